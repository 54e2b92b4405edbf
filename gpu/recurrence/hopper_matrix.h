// Matrix products of a warpgroup (wgmma) on operands in rows of 128 bytes, and scaling by powers of two. CUDA
// only, sm_90a.
#pragma once

#include <cstdint>

#include "gaugeblock/gpu/runtime/hopper.h"

namespace gaugeblock::gpu::hopper {

/// Operand in shared memory: rows of 128 bytes, eight rows apart 1024 bytes, 128-byte swizzle.
__device__ __forceinline__ std::uint64_t descriptor(std::uint32_t address) {
  return static_cast<std::uint64_t>((address >> 4) & 0x3FFF) | std::uint64_t{64} << 16 |
         std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
}
__device__ __forceinline__ std::uint64_t advanced(std::uint64_t descriptor, std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}
/// Hides a value from the optimizer, which would otherwise hoist (and spill) dozens of descriptors.
__device__ __forceinline__ std::uint32_t opaque(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

__device__ __forceinline__ float opaque(float value) {
  asm volatile("" : "+f"(value));
  return value;
}
__device__ __forceinline__ long long opaque(long long value) {
  asm volatile("" : "+l"(value));
  return value;
}

// Accumulators of 64 × 64 over a warpgroup: thread t of warp w has rows 16w + t/4 and 8 more, columns
// 8j + 2(t%4) and 1 more, as [4j], [4j+1] of the first row and [4j+2], [4j+3] of the second.
#define GAUGEBLOCK_ACCUMULATORS(d)                                                                          \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),           \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),            \
      "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),            \
      "+f"(d[30]), "+f"(d[31])
#define GAUGEBLOCK_ACCUMULATOR_LIST                                                                         \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27," \
  "%28,%29,%30,%31}"

/// Zeros that live from here on only; plain ones would be kept in registers long before.
__device__ __forceinline__ void matrix_clear(float (&d)[32]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(d[i]));
}
/// Between other uses of the accumulators and the matrix instructions that take them.
__device__ __forceinline__ void matrix_begin(float (&d)[32]) {
  asm volatile("" : GAUGEBLOCK_ACCUMULATORS(d)::"memory");
  wgmma_fence();
}
/// Waits until at most `Pending` later groups are under way; the accumulators may then be used.
template <int Pending>
__device__ __forceinline__ void matrix_wait(float (&d)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : GAUGEBLOCK_ACCUMULATORS(d) : "n"(Pending) : "memory");
}
/// d = a·b + (accumulate ? d : 0), 64 × 64 × 16, float16 with float32 accumulators, both from shared memory.
/// TransposeA/B: the operand lies with its row or column index along the 128 bytes.
template <int TransposeA, int TransposeB>
__device__ __forceinline__ void matrix_multiply(float (&d)[32], std::uint64_t a, std::uint64_t b,
                                                int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " GAUGEBLOCK_ACCUMULATOR_LIST
      ", %32, %33, p, 1, 1, %35, %36;\n}"
      : GAUGEBLOCK_ACCUMULATORS(d)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TransposeA), "n"(TransposeB));
}
/// d += a·b with a from registers.
template <int TransposeB>
__device__ __forceinline__ void matrix_multiply_registers(float (&d)[32], const std::uint32_t* a,
                                                          std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " GAUGEBLOCK_ACCUMULATOR_LIST
               ", {%32,%33,%34,%35}, %36, 1, 1, 1, %37;"
               : GAUGEBLOCK_ACCUMULATORS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TransposeB));
}

/// ± the larger of |a| and |b|; NaN when one is.
__device__ __forceinline__ float larger_magnitude(float a, float b) {
  float result;
  asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
/// The largest |x| of a warp; NaN when one is.
__device__ __forceinline__ float largest_magnitude(float x) {
  // As integers, magnitudes are in the same order, infinity and then NaN behind all numbers.
  return __uint_as_float(__reduce_max_sync(0xffffffffU, __float_as_uint(x) & 0x7fffffffU));
}
/// Has the line of 128 bytes at this address brought to the L2 cache. No branch.
__device__ __forceinline__ void prefetch_if(bool condition, const float* from) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p prefetch.global.L2 [%0];\n}" ::"l"(from),
               "r"(static_cast<int>(condition)));
}
__device__ __forceinline__ void store_shared(std::uint32_t address, uint2 values) {
  asm volatile("st.shared.v2.b32 [%0], {%1,%2};" ::"r"(address), "r"(values.x), "r"(values.y) : "memory");
}
/// Stores two neighbours, which are not read again here. No branch.
__device__ __forceinline__ void store_pair_if(bool condition, float* to, float x, float y) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n@p st.global.cs.v2.f32 [%0], {%1,%2};\n}" ::"l"(to),
               "f"(x), "f"(y), "r"(static_cast<int>(condition))
               : "memory");
}
/// 2^e for e in [-126, 127].
__device__ __forceinline__ float power_of_two(int e) {
  return __int_as_float((e + 127) << 23);
}
__device__ __forceinline__ int clamped(int e) {
  return min(max(e, -126), 126);
}
/// x · 2^e for any e in [-504, 504], in at most four exact steps (but for underflow).
__device__ __forceinline__ float scaled(float x, int e) {
  const int first = clamped(e), second = clamped(e - first);
  return x * power_of_two(first) * power_of_two(second);
}
/// ⌊log2 |x|⌋; -126 for smaller ones, 128 for infinity and NaN.
__device__ __forceinline__ int exponent_of(float x) {
  return max(static_cast<int>((__float_as_uint(x) & 0x7fffffffU) >> 23), 1) - 127;
}

}  // namespace gaugeblock::gpu::hopper
