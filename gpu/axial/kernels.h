// All axial kernels, in the order of the story they tell. Each backend has its own list, of the same names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/axial/kernel_arguments.h"
#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

struct AxialKernel {
  std::string name;
  std::string summary;  ///< what differs from the one before, in one sentence
  std::string form;     ///< the reference form whose operations it performs, in any order of each sum
  /// Why the sizes or strides cannot be taken, or nothing. Looks at no values.
  std::optional<std::string> (*declines)(const AxialArguments& arguments);
  /// Computes every element of the outputs. Throws LaunchRefused or DeviceError.
  void (*run)(const AxialArguments& arguments, LaunchContext& context);
};

namespace simt_backend {
const std::vector<AxialKernel>& axial_kernels();
}
/// Only in builds with CUDA (GAUGEBLOCK_HAS_CUDA).
namespace cuda_backend {
const std::vector<AxialKernel>& axial_kernels();
}

}  // namespace gaugeblock::gpu
