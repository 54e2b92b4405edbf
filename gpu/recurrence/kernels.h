// All recurrence kernels, in the order of the story they tell. Each backend has its own list, of the same
// names; kernels that need tensor cores are in the list of CUDA only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/recurrence/kernel_arguments.h"
#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

struct RecurrenceKernel {
  std::string name;
  std::string summary;  ///< what differs from the one before, in one sentence
  std::string form;     ///< the reference form whose operations it performs, in any order of each sum
  Index chunk =
      0;  ///< form "chunked": steps in a chunk; form "scan": steps in a tree, when the state is carried on
  /// Why the sizes or strides cannot be taken, or nothing. Looks at no values: `run` may still throw
  /// Declined.
  std::optional<std::string> (*declines)(const RecurrenceArguments& arguments);
  /// Computes every element of both outputs. Throws Declined, LaunchRefused or DeviceError.
  void (*run)(const RecurrenceArguments& arguments, LaunchContext& context);
  bool tree_products = false;  ///< products of gates are formed in a tree, though the form has none
  bool split_half = false;     ///< products of matrices on tensor cores, operands as two float16
  std::string architecture{};  ///< "sm_90": that of the only GPUs it runs on; empty: it runs on any
};

namespace simt_backend {
const std::vector<RecurrenceKernel>& recurrence_kernels();
}
/// Only in builds with CUDA (GAUGEBLOCK_HAS_CUDA).
namespace cuda_backend {
const std::vector<RecurrenceKernel>& recurrence_kernels();
}

}  // namespace gaugeblock::gpu
