// A launch that may begin before the one in front ends. Included by CUDA kernel sources only.
#pragma once

#include "gaugeblock/gpu/runtime/launch.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// Lets the next kernel in the stream begin where it was launched by launch_dependent(), once every block has
/// said so or ended.
__device__ __forceinline__ void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;");
}
/// The kernel in front has ended, and what it wrote is seen. Returns at once in any other launch.
__device__ __forceinline__ void wait_for_kernel_in_front() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Like launch(); with `dependent` the kernel may begin while the kernel in front of it in the stream still
/// runs, and waits for its end by wait_for_kernel_in_front(). Everything that it reads before that must have
/// been written before the kernel in front began.
template <class... Parameters, class... Arguments>
void launch_dependent(const Kernel<Parameters...>& kernel, dim3 grid, dim3 block,
                      std::size_t dynamic_shared_bytes, bool dependent, LaunchContext& context,
                      const Arguments&... arguments) {
  launch_that_begins(dependent ? Begin::while_it_ends : Begin::after_kernel_in_front, kernel, grid, block,
                     dynamic_shared_bytes, context, arguments...);
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
