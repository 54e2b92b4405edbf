// Matrix products of a warpgroup (128 threads) on Hopper: float16 operands, float32 accumulators. Included by
// sources for sm_90a only.
#pragma once

#include <cstdint>

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace wgmma {

__device__ __forceinline__ void wait_all() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/// An operand in shared memory as core matrices of 8 rows of 16 bytes, without swizzle: two along the depth
/// are 128 bytes apart, neighbours across it 256.
__device__ __forceinline__ std::uint64_t operand(const void* p) {
  const std::uint64_t address = static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
  return (address >> 4 & 0x3fff) | std::uint64_t{128 >> 4} << 16 | std::uint64_t{256 >> 4} << 32;
}

#define GAUGEBLOCK_8(c, i)                                                                      \
  "+f"((c)[i]), "+f"((c)[(i) + 1]), "+f"((c)[(i) + 2]), "+f"((c)[(i) + 3]), "+f"((c)[(i) + 4]), \
      "+f"((c)[(i) + 5]), "+f"((c)[(i) + 6]), "+f"((c)[(i) + 7])

/// c [64,48] = (accumulate ? c : 0) + a [64,16] · b [48,16]ᵀ, both in shared memory.
__device__ __forceinline__ void multiply_48(float (&c)[24], std::uint64_t a, std::uint64_t b,
                                            int accumulate) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p,%26,0;\n"
      "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23},"
      "%24,%25,p,1,1,0,0;}"
      : GAUGEBLOCK_8(c, 0), GAUGEBLOCK_8(c, 8), GAUGEBLOCK_8(c, 16)
      : "l"(a), "l"(b), "r"(accumulate));
}

/// c [64,64] = (accumulate ? c : 0) + a [64,16], in registers, · b [64,16]ᵀ in shared memory.
__device__ __forceinline__ void multiply(float (&c)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                         int accumulate) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p,%37,0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%"
      "27,"
      "%28,%29,%30,%31},{%32,%33,%34,%35},%36,p,1,1,0;}"
      : GAUGEBLOCK_8(c, 0), GAUGEBLOCK_8(c, 8), GAUGEBLOCK_8(c, 16), GAUGEBLOCK_8(c, 24)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

/// c [64,128] = (accumulate ? c : 0) + a [64,16], in registers, · b [128,16]ᵀ in shared memory.
__device__ __forceinline__ void multiply(float (&c)[64], const std::uint32_t (&a)[4], std::uint64_t b,
                                         int accumulate) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p,%69,0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%"
      "27,"
      "%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%"
      "53,"
      "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},{%64,%65,%66,%67},%68,p,1,1,0;}"
      : GAUGEBLOCK_8(c, 0), GAUGEBLOCK_8(c, 8), GAUGEBLOCK_8(c, 16), GAUGEBLOCK_8(c, 24), GAUGEBLOCK_8(c, 32),
        GAUGEBLOCK_8(c, 40), GAUGEBLOCK_8(c, 48), GAUGEBLOCK_8(c, 56)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

#undef GAUGEBLOCK_8

}  // namespace wgmma
}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
