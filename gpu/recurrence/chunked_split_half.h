// `chunked_split_half` with its memory given by the caller: for graphs, streams and other programs. CUDA
// only.
#pragma once

#include <optional>
#include <string>

#include "gaugeblock/gpu/recurrence/kernel_arguments.h"
#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

/// Why the sizes cannot be taken, or nothing.
std::optional<std::string> chunked_split_half_declines(const RecurrenceArguments& arguments);

/// Floats of workspace that a launch needs, aligned to 16 bytes; at least 1. Precondition: not declined.
Index chunked_split_half_workspace_floats(const RecurrenceArguments& arguments);

/// Launches on context.stream; allocates nothing and, with context.wait off, waits for nothing. What the
/// workspace holds before does not matter. Throws LaunchRefused or DeviceError.
void chunked_split_half_launch(const RecurrenceArguments& arguments, float* workspace,
                               LaunchContext& context);

}  // namespace gaugeblock::gpu
