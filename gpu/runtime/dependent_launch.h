// A launch that may begin before the one in front ends. Included by CUDA kernel sources only.
#pragma once

#include <cuda_runtime.h>

#include <string>

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

inline void require_success(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw DeviceError(std::string(what) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

/// Like launch(); with `dependent` the kernel may begin while the kernel in front of it in the stream still
/// runs, and waits for its end by wait_for_kernel_in_front(). Everything that it reads before that must have
/// been written before the kernel in front began.
template <class... Parameters, class... Arguments>
void launch_dependent(const Kernel<Parameters...>& kernel, dim3 grid, dim3 block,
                      std::size_t dynamic_shared_bytes, bool dependent, LaunchContext& context,
                      const Arguments&... arguments) {
  const std::string what = std::string("launch of ") + kernel.name;
  if (dynamic_shared_bytes > 48 * 1024)
    require_success(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(dynamic_shared_bytes)),
                    what.c_str());
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = dynamic_shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.stream);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = dependent ? 1 : 0;
  if (context.dry) return;
  require_success(cudaLaunchKernelEx(&config, kernel.function, static_cast<Parameters>(arguments)...),
                  what.c_str());
  require_success(cudaGetLastError(), what.c_str());
  if (context.wait) require_success(cudaStreamSynchronize(config.stream), kernel.name);
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
