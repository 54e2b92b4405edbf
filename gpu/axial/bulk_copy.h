// The bulk copy engine. Included by CUDA kernel sources only.
#pragma once

#include <cstdint>

#include "gaugeblock/gpu/runtime/hopper.h"
#include "gaugeblock/gpu/simt/simt.h"

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

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
