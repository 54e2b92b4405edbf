// What kernels with Hopper's instructions share: barriers in shared memory, the fences of its asynchronous
// units, and a float32 as two float16. Included by CUDA kernel sources only; those for sm_90a have more of
// their own.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace gaugeblock::gpu::hopper {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Barriers in shared memory (mbarrier), by their shared address or by a pointer.

/// A phase ends with `arrivals` arrivals and all bytes announced for it.
__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Waits for the end of the phase with this parity: 0 for the first.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\n"
      "bra WAIT;\nDONE:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, int arrivals) {
  barrier_init(shared_address(barrier), arrivals);
}
__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  barrier_arrive(shared_address(barrier));
}
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  barrier_wait(shared_address(barrier), parity);
}

/// After barrier_init: the copy engine and other threads see the barriers.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Ordinary stores to shared memory before it are seen by the copy engine and by wgmma after it: for the
/// writer.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Accumulators and fragments are settled before the next wgmma reads them.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// x = high + low within 2^-22 |x| or 2^-25, whichever is larger, and y alike; |x|, |y| < 65504. x is in the
/// lower half of each word.
__device__ __forceinline__ void split(float x, float y, std::uint32_t& high, std::uint32_t& low) {
  const __half2 upper = __floats2half2_rn(x, y);
  const float2 back = __half22float2(upper);
  const __half2 rest = __floats2half2_rn(x - back.x, y - back.y);
  high = reinterpret_cast<const std::uint32_t&>(upper);
  low = reinterpret_cast<const std::uint32_t&>(rest);
}

}  // namespace gaugeblock::gpu::hopper
