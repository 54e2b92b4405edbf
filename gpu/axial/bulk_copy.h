// The bulk copy engine, and a launch that may begin before the one in front ends.
// Included by CUDA kernel sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gaugeblock/gpu/runtime/hopper.h"
#include "gaugeblock/gpu/runtime/launch.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// Starts a copy of `bytes`, a multiple of 16, and arrives at the barrier with it.
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  using hopper::shared_address;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

inline void require_success(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw DeviceError(std::string(what) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

/// Like launch(); with `dependent` the kernel may begin while the kernel in front of it in the stream still
/// runs, and waits for its end by griddepcontrol.wait. Everything that it reads before that must have been
/// written before the kernel in front began.
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
