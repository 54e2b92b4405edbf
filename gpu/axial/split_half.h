// Float32 products on float16 tensor cores ("3xFP16"), and the parameters of a pass made ready for them.
// Included by CUDA kernel sources only.
//
//     x·2^s ≈ hi + lo in float16, 22 bits       a·b ≈ a_hi b_hi + (a_hi b_lo + a_lo b_hi), in float32
//
// Range is never assumed. Every operand is scaled by a power of two that comes from a bound on it, so nothing
// can leave float16 whatever the tokens are (LayerNorm: |z_i| <= √D):
//
// - n_k: |n_k| <= N_k = √D |γ_k| + |β_k|, scaled so that N_k lies in (2^13, 2^14]; γ and β carry the scale.
// - W_q, W_k, W_v: column k carries the inverse of n_k's scale; row c is scaled so that Σ_k |W_ck| N_k stays
//   within 2^28.
// - q, k, v: leave the product scaled, times 2^-14, so at most 2^14. The scales of q_c and k_c multiply
//   to the same power of two for every channel of a head, which the scale of the logits takes back.
// - W_out: column c carries the inverse of v_c's scale; row j is scaled like the rows above, and y's sum
//   takes it back.
//
// What float16 loses below its smallest number, 2^-25 of a scaled operand, is 2^-38 of such a bound. The
// model of these errors: proofs_notes/notes/split_operands.md.
#pragma once

#include <cstdint>

#include "gaugeblock/gpu/axial/kernel_views.h"
#include "gaugeblock/gpu/runtime/hopper.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace split_half {

using hopper::split;

/// The accumulator of q, k or v, times this, is what goes on as a split operand.
constexpr float to_operand = 0x1p-14F;

/// Weights of a softmax enter their products times at most 2^7: 2^-25 less is lost of them.
constexpr float weight_exponent = 7;

/// A 16×16 operand A of mma.m16n8k16 as a lane of the warp holds it.
struct Fragment {
  std::uint32_t hi[4], lo[4];
};

/// c += A·B, float16 to float32.
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// large += A_hi B_hi, small += A_hi B_lo + A_lo B_hi. b: {hi of k 0…7, hi of k 8…15, the same two of lo}.
/// Apart, because an accumulation truncates at the size of its sum: `small` then loses next to nothing.
__device__ __forceinline__ void multiply_split(float (&large)[4], float (&small)[4], const Fragment& a,
                                               const uint4& b) {
  multiply(small, a.hi, b.z, b.w);
  multiply(large, a.hi, b.x, b.y);
  multiply(small, a.lo, b.x, b.y);
}

/// Two accumulators of 16×8 as the operand A of the next product.
__device__ __forceinline__ void to_fragment(Fragment& f, const float (&left)[4], const float (&right)[4]) {
  split(left[0], left[1], f.hi[0], f.lo[0]);
  split(left[2], left[3], f.hi[1], f.lo[1]);
  split(right[0], right[1], f.hi[2], f.lo[2]);
  split(right[2], right[3], f.hi[3], f.lo[3]);
}

/// 8×8 numbers of 16 bits across the warp, transposed.
__device__ __forceinline__ std::uint32_t transpose(std::uint32_t a) {
  std::uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(result) : "r"(a));
  return result;
}

/// Sum and maximum over the four lanes that hold a row of an accumulator.
__device__ __forceinline__ float quad_sum(float v) {
  v += __shfl_xor_sync(0xffffffffU, v, 1);
  return v + __shfl_xor_sync(0xffffffffU, v, 2);
}
__device__ __forceinline__ float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffU, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffU, v, 2));
}

__device__ __forceinline__ float4 load_four(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

/// 2^v in one instruction; its error is measured by tests/bench/measure_exp.cu.
__device__ __forceinline__ float exp2_approximate(float v) {
  float result;
  asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(result) : "f"(v));
  return result;
}
/// 1 / v within 1 ulp.
__device__ __forceinline__ float reciprocal(float v) {
  float result;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(result) : "f"(v));
  return result;
}

// ---- LayerNorm: two tokens in the four lanes of a row, which have every fourth four channels

__device__ __forceinline__ float sum_of(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}
__device__ __forceinline__ float square_sum(float4 v) {
  return fmaf(v.x, v.x, v.y * v.y) + fmaf(v.z, v.z, v.w * v.w);
}
__device__ __forceinline__ float4 minus(float4 v, float mean) {
  return make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
}

/// Takes their means from the tokens; `root0` and `root1` become 1 / √(variance + eps).
template <int Steps>
__device__ __forceinline__ void center(float4 (&v0)[Steps], float4 (&v1)[Steps], float eps, float& root0,
                                       float& root1) {
  constexpr float inverse = 1.0F / (16 * Steps);  // exact: Steps is a power of two
  float sum0 = 0, sum1 = 0;
  GAUGEBLOCK_UNROLL
  for (int k = 0; k < Steps; ++k) {
    sum0 += sum_of(v0[k]);
    sum1 += sum_of(v1[k]);
  }
  const float mean0 = quad_sum(sum0) * inverse, mean1 = quad_sum(sum1) * inverse;
  sum0 = sum1 = 0;
  GAUGEBLOCK_UNROLL
  for (int k = 0; k < Steps; ++k) {
    v0[k] = minus(v0[k], mean0);
    v1[k] = minus(v1[k], mean1);
    sum0 += square_sum(v0[k]);
    sum1 += square_sum(v1[k]);
  }
  root0 = rsqrtf(fmaf(quad_sum(sum0), inverse, eps));
  root1 = rsqrtf(fmaf(quad_sum(sum1), inverse, eps));
}

/// A lane's part of a step of n: four channels of two tokens, less their means.
__device__ __forceinline__ Fragment norm_fragment(float4 v0, float4 v1, float root0, float root1, float4 w,
                                                  float4 bias) {
  Fragment n;
  split(fmaf(v0.x * root0, w.x, bias.x), fmaf(v0.y * root0, w.y, bias.y), n.hi[0], n.lo[0]);
  split(fmaf(v1.x * root1, w.x, bias.x), fmaf(v1.y * root1, w.y, bias.y), n.hi[1], n.lo[1]);
  split(fmaf(v0.z * root0, w.z, bias.z), fmaf(v0.w * root0, w.w, bias.w), n.hi[2], n.lo[2]);
  split(fmaf(v1.z * root1, w.z, bias.z), fmaf(v1.w * root1, w.w, bias.w), n.hi[3], n.lo[3]);
  return n;
}

// ---- the parameters of a pass, scaled, split and in the order in which kernels read them

enum class Packing {
  fragments,          ///< operand B of mma.m16n8k16, every part of a head alike
  values_transposed,  ///< the same, but W_v as operand A: the product is then vᵀ, the operand that p·v wants
  core_matrices,      ///< 8×8 pieces as wgmma reads them from shared memory, without swizzle
};

/// Sizes of the packed parameters: channels, head and columns in steps of 16, zeros behind the end.
struct Shape {
  int D, heads, d;
  int steps;       ///< ⌈D/16⌉
  int head_steps;  ///< ⌈d/16⌉, or more where a kernel wants it
  Packing packing;

  /// 16-byte words of a head: [steps][q, k, v][2·head_steps][32], then W_out's [head_steps][2·steps][32].
  __host__ __device__ int qkv_words() const { return steps * 3 * head_steps * 64; }
  __host__ __device__ int out_words() const { return head_steps * steps * 64; }
  __host__ __device__ int head_words() const { return qkv_words() + out_words(); }
  __host__ __device__ int columns() const { return 16 * steps; }
};

struct Weights {
  const uint4* packed;       ///< [heads][head_words]
  const float* norm_weight;  ///< [16·steps] scaled γ
  const float* norm_bias;    ///< [16·steps] scaled β
  const float* out_scale;    ///< [16·steps] what takes the scale of y's sum back
  const float* out_bias;     ///< [16·steps]
  const float* logit_scale;  ///< [heads] log2(e)/√d, and back from the scales of q and k
  /// [heads] each: the same, spread over the accumulators of q and k, so that their product is the exponent
  /// of a weight but for `rest`. `rest` is 1 unless logits may pass 2^28.
  const float *q_scale, *k_scale, *rest_scale;
};

/// Bytes of the packed parameters of one pass, a multiple of 256.
std::size_t weights_bytes(const Shape& shape);

/// Where launch_prepare puts the packed parameters of a pass in `memory`.
Weights weights_in(void* memory, const Shape& shape);

/// Packs the parameters of a pass into `memory`: three small kernels, to be run again when weights change.
void launch_prepare(const AxialPass& pass, const Shape& shape, void* memory, LaunchContext& context);

}  // namespace split_half

/// x and y of a pass can be read and written four channels at a time. In fused_pass_split_half.cu.
bool reads_vectors(const AxialPass& pass);

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
