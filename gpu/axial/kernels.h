// All axial kernels, in the order of the story they tell. Each backend has its own list, of the same names
// but for kernels that exist for a GPU alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/axial/kernel_arguments.h"
#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

/// A kernel on memory that somebody else owns, as three steps on `context.stream`. With context.wait off none
/// of them allocates or synchronises, so all can be captured into a graph. `arguments`: the same in all
/// three.
struct AxialWorkspaceSteps {
  /// Bytes of device memory, aligned to 256, that the other two need.
  std::size_t (*workspace_bytes)(const AxialArguments& arguments) = nullptr;
  /// Packs the parameters. To be run again when they, not x, change.
  void (*prepare)(const AxialArguments& arguments, void* workspace, LaunchContext& context) = nullptr;
  /// Computes the outputs.
  void (*launch)(const AxialArguments& arguments, void* workspace, LaunchContext& context) = nullptr;
};

struct AxialKernel {
  std::string name;
  std::string summary;  ///< what differs from the one before, in one sentence
  std::string form;     ///< the reference form whose operations it performs, in any order of each sum
  /// Why the sizes or strides cannot be taken, or nothing. Looks at no values.
  std::optional<std::string> (*declines)(const AxialArguments& arguments);
  /// Computes every element of the outputs. Throws LaunchRefused or DeviceError.
  void (*run)(const AxialArguments& arguments, LaunchContext& context);
  /// Products multiply operands split into two float16, and exponentials and 1/√ are one instruction each.
  bool split_half = false;
  /// The same in steps, where a kernel has them: then `run` allocates a workspace and does all three.
  AxialWorkspaceSteps steps{};
  std::string architecture{};  ///< "sm_90": that of the only GPUs it runs on; empty: it runs on any
};

namespace simt_backend {
const std::vector<AxialKernel>& axial_kernels();
}
/// Only in builds with CUDA (GAUGEBLOCK_HAS_CUDA).
namespace cuda_backend {
const std::vector<AxialKernel>& axial_kernels();
}

}  // namespace gaugeblock::gpu
