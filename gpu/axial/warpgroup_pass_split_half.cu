// Differs from `fused_pass_split_half`: warpgroups with different work. One multiplies n by W_q, W_k, W_v
// (wgmma, both operands in shared memory) and hands q, k and v over through a ring of two heads; the others,
// 64 tokens each, do the attention (mma.sync, scores in registers) and W_out (wgmma), and keep y of their
// tokens in registers over all heads. Blocks stay and walk the sequences; n of the next one is made while the
// last heads are attended to.
//
// Softmax without a maximum: weights are 2^s as they come, and their sum shows afterwards whether that was
// right. Where it lies within [L/16, 60000], none left float16, and what float16 lost is 2^-21 of the sum at
// most. Else the warp does the head again with a running maximum.
//
// Takes D = 64 (up to 256 tokens) and 128 (up to 128 tokens) in heads of 16, contiguous channels.
//
// On an H200 (`gaugeblock bench`: replays of a graph) B=8, 128×128, D=128 takes 422 µs and B=4, 256×256,
// D=64 493 µs; about 730 and 940 where every head is done twice (weights times 4). Neither bytes (64 µs
// at 4.2 TB/s) nor tensor cores (200 µs at their rate for wgmma) bound it, by count. What is left, not
// profiled yet, is attention: two warps a scheduler whose mma.sync, exponentials and conversions wait for
// each other, and one LayerNorm a sequence that nothing hides. A further gain needs scores and p·v on wgmma
// and two sequences in flight. What was tried: the projection of a head under the attention of the next
// spills registers (473, 601); accumulating y on the tensor core is faster (416), at 2.4 times float32's
// error.
#include <algorithm>

#include "gaugeblock/gpu/axial/bulk_copy.h"
#include "gaugeblock/gpu/axial/split_half.h"
#include "gaugeblock/gpu/axial/wgmma.h"
#include "gaugeblock/gpu/axial/workspace_run.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

using namespace hopper;
using namespace split_half;

/// A block for up to MaxL tokens of 16·Steps channels in Steps heads. Sizes in 16-byte words.
template <int MaxL, int Steps>
struct Block {
  static constexpr int consumers = MaxL / 64;  // warpgroups of 64 tokens; one more produces
  static constexpr int threads = 128 * (consumers + 1);
  static constexpr int qkv = Steps * 192, out = Steps * 64;  // weights of a head
  static constexpr int keys = MaxL / 16 * 192;  // per 16 tokens: k [2][32], v [2][32], q [hi, lo][32]
  static constexpr int n = MaxL * Steps * 4;
  static constexpr int words = 2 * qkv + 4 * out + 2 * keys + n;
  // Registers after setmaxnreg: together what the launch allocates, 168 or 96 a thread.
  static constexpr int producer_registers = MaxL == 128 ? 88 : 64;
  static constexpr int consumer_registers = MaxL == 128 ? 208 : 104;
  static constexpr int at_once = MaxL == 128 ? 2 : 1;  // 64-token products the producer has in flight
  static constexpr int chunk = 32;                     // keys whose scores a warp holds
};

/// A pass over contiguous channels, with what the kernel would otherwise compute again and again.
struct Sequences {
  const float* x;
  float* y;
  int count, others, L;
  Index x_batch, x_other, x_token, y_batch, y_other, y_token;
  float eps;
};

/// 16 queries of a head over all keys: o (not divided yet) and the sums of the weights, this lane's part.
/// Bounded: weights are 2^s. Otherwise 2^(7 + (s - max)·rest).
template <bool Bounded, bool Full, int MaxL, int Chunk>
__device__ __forceinline__ void attend(const Fragment& q, const uint4* keys, int L, float rest,
                                       float (&o)[2][4], float& sum0, float& sum1) {
  const int t = static_cast<int>(threadIdx.x % 4);
  float less[2][4] = {}, least[2][4] = {}, top0 = -INFINITY, top1 = -INFINITY;
  sum0 = sum1 = 0;
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
  for (int j = 0; j < 4; ++j) o[i][j] = 0;
  // Keys whose p·v the tensor core adds up, truncating, before they are added to o with rounding.
  constexpr int group = Bounded ? 64 : Chunk;
  constexpr int unrolled = Bounded && Full && MaxL == 128 ? MaxL / group : 1;
#pragma unroll unrolled
  for (int start = 0; start < (Full ? MaxL : L); start += group) {
    float part[2][4] = {};
    GAUGEBLOCK_UNROLL
    for (int first = start; first < start + group; first += Chunk) {
      const uint4* chunk = keys + first * 12;
      float s[Chunk / 8][4];
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < Chunk / 8; ++j) {
        s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0;
        const uint4 k = chunk[(j / 2) * 192 + (j % 2) * 32];
        multiply(s[j], q.hi, k.z, k.w);  // the small products first: the sum is truncated at its size
        multiply(s[j], q.lo, k.x, k.y);
        multiply(s[j], q.hi, k.x, k.y);
      }
      if (!Full && first + Chunk > L) {
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < Chunk / 8; ++j) GAUGEBLOCK_UNROLL
        for (int i = 0; i < 4; ++i)
          if (first + 8 * j + 2 * t + i % 2 >= L) s[j][i] = -INFINITY;
      }
      if (!Bounded) {
        float new0 = top0, new1 = top1;
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < Chunk / 8; ++j) {
          new0 = fmaxf(new0, fmaxf(s[j][0], s[j][1]));
          new1 = fmaxf(new1, fmaxf(s[j][2], s[j][3]));
        }
        new0 = quad_max(new0);
        new1 = quad_max(new1);
        const float rescale0 = exp2_approximate((top0 - new0) * rest);
        const float rescale1 = exp2_approximate((top1 - new1) * rest);
        top0 = new0;
        top1 = new1;
        sum0 *= rescale0;
        sum1 *= rescale1;
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
        for (int j = 0; j < 4; ++j) o[i][j] *= j < 2 ? rescale0 : rescale1;
      }
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < Chunk / 8; ++j) {
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < 4; ++i)
          s[j][i] = exp2_approximate(Bounded ? s[j][i]
                                             : fmaf(s[j][i] - (i < 2 ? top0 : top1), rest, weight_exponent));
        sum0 += s[j][0] + s[j][1];
        sum1 += s[j][2] + s[j][3];
      }
      GAUGEBLOCK_UNROLL
      for (int k = 0; k < Chunk / 16; ++k) {
        Fragment p;
        to_fragment(p, s[2 * k], s[2 * k + 1]);
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < 2; ++j) {  // three chains: none waits for another
          const uint4 v = chunk[k * 192 + 64 + 32 * j];
          multiply(less[j], p.hi, v.z, v.w);
          multiply(least[j], p.lo, v.x, v.y);
          multiply(part[j], p.hi, v.x, v.y);
        }
      }
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
    for (int j = 0; j < 4; ++j) {
      o[i][j] += part[i][j];
      if (!Bounded) {  // the small products join before the next rescaling
        o[i][j] += less[i][j] + least[i][j];
        less[i][j] = least[i][j] = 0;
      }
    }
  }
  if (Bounded) {
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
    for (int j = 0; j < 4; ++j) o[i][j] += less[i][j] + least[i][j];
  }
  sum0 = quad_sum(sum0);
  sum1 = quad_sum(sum1);
}

/// Full: L = MaxL.
template <int MaxL, int Steps, bool Full>
__global__ void __launch_bounds__(Block<MaxL, Steps>::threads, 1)
    warpgroup_pass_kernel(Sequences pass, Weights weights) {
  using B = Block<MaxL, Steps>;
  extern __shared__ __align__(128) unsigned char warpgroup_pass_shared[];
  uint4* const qkv_ring = reinterpret_cast<uint4*>(warpgroup_pass_shared);
  uint4* const out_ring = qkv_ring + 2 * B::qkv;
  uint4* const key_ring = out_ring + 4 * B::out;
  uint4* const n_shared = key_ring + 2 * B::keys;
  // Full: the data is there; empty: everyone is done with it.
  __shared__ __align__(8) std::uint64_t qkv_full[2], out_full[4], out_empty[4], keys_full[2], keys_empty[2];
  __shared__ __align__(16) float norm_weight[16 * Steps], norm_bias[16 * Steps];

  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int L = Full ? MaxL : pass.L;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      barrier_init(&out_full[i], 1);
      barrier_init(&out_empty[i], 4 * B::consumers);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(&qkv_full[i], 1);
      // Every lane arrives for its own accesses.
      barrier_init(&keys_full[i], 128);
      barrier_init(&keys_empty[i], 128 * B::consumers);
    }
    fence_barrier_init();
    fence_async_proxy();
  }
  if (threadIdx.x < 16 * Steps) {
    norm_weight[threadIdx.x] = weights.norm_weight[threadIdx.x];
    norm_bias[threadIdx.x] = weights.norm_bias[threadIdx.x];
  }
  __syncthreads();  // the barriers and LayerNorm's parameters are ready before anyone uses them

  const int total =  // heads of all sequences of this block; `it` counts them
      (pass.count - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) /
      static_cast<int>(gridDim.x) * Steps;
  int it = 0;
  if (warp >= 4 * B::consumers) {  // ---- the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(B::producer_registers));
    const int own = warp - 4 * B::consumers;
    const bool leads = threadIdx.x == B::consumers * 128;
    const std::uint64_t n_operand = wgmma::operand(n_shared), qkv_operand = wgmma::operand(qkv_ring);
    const auto warpgroup_barrier = [] { asm volatile("bar.sync 1,128;" ::: "memory"); };
    const auto fetch_qkv = [&](int i) {
      if (leads && i < total)
        bulk_load(qkv_ring + i % 2 * B::qkv, weights.packed + i % Steps * (B::qkv + B::out),
                  B::qkv * sizeof(uint4), &qkv_full[i % 2]);
    };
    const auto fetch_out = [&](int i) {
      if (!leads || i >= total) return;
      if (i >= 4) barrier_wait(&out_empty[i % 4], (i / 4 - 1) % 2);
      bulk_load(out_ring + i % 4 * B::out, weights.packed + i % Steps * (B::qkv + B::out) + B::qkv,
                B::out * sizeof(uint4), &out_full[i % 4]);
    };
    fetch_qkv(0);
    fetch_qkv(1);
    fetch_out(0);
    for (int sequence = static_cast<int>(blockIdx.x); sequence < pass.count;
         sequence += static_cast<int>(gridDim.x)) {
      const float* x = pass.x + sequence / pass.others * pass.x_batch + sequence % pass.others * pass.x_other;
      warpgroup_barrier();  // every product of the sequence before has read n
      GAUGEBLOCK_ROLLED
      for (int m = 0; m < B::consumers; ++m) {
        // Rows behind the last token repeat it; as keys they are masked, and never stored.
        const int l0 = m * 64 + own * 16 + g, l1 = l0 + 8;
        const float* x0 = x + (Full ? l0 : min(l0, L - 1)) * pass.x_token + 4 * t;
        const float* x1 = x + (Full ? l1 : min(l1, L - 1)) * pass.x_token + 4 * t;
        float4 v0[Steps], v1[Steps];
        GAUGEBLOCK_UNROLL
        for (int k = 0; k < Steps; ++k) {
          v0[k] = load_four(x0 + 16 * k);
          v1[k] = load_four(x1 + 16 * k);
        }
        float root0, root1;
        center(v0, v1, pass.eps, root0, root1);
        GAUGEBLOCK_UNROLL
        for (int k = 0; k < Steps; ++k) {
          asm volatile("" ::: "memory");  // loads that come sooner cost registers that are not there
          const Fragment n =
              norm_fragment(v0[k], v1[k], root0, root1, load_four(norm_weight + 16 * k + 4 * t),
                            load_four(norm_bias + 16 * k + 4 * t));
          // Core matrices: [16 tokens][k core][8 rows] of 8 halves; hi, then lo.
          std::uint32_t* to =
              reinterpret_cast<std::uint32_t*>(n_shared + (m * Steps + k) * 256) + own * 128 + lane;
          constexpr int place[4] = {0, 64, 32, 96};
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < 4; ++i) {
            to[place[i]] = n.hi[i];
            to[512 + place[i]] = n.lo[i];
          }
        }
      }
      fence_async_proxy();
      warpgroup_barrier();  // n is complete, and visible to wgmma
      if (const int next = sequence + static_cast<int>(gridDim.x); next < pass.count) {
        const float* ahead = pass.x + next / pass.others * pass.x_batch + next % pass.others * pass.x_other;
        for (int i = static_cast<int>(threadIdx.x) - B::consumers * 128; i < L * (Steps / 2); i += 128)
          asm volatile("prefetch.global.L2 [%0];" ::"l"(ahead + i / (Steps / 2) * pass.x_token +
                                                        i % (Steps / 2) * 32));
      }
      GAUGEBLOCK_ROLLED
      for (int head = 0; head < Steps; ++head, ++it) {
        uint4* const keys = key_ring + it % 2 * B::keys;
        const float q_scale = weights.q_scale[head], k_scale = weights.k_scale[head];
        barrier_wait(&qkv_full[it % 2], it / 2 % 2);
        GAUGEBLOCK_ROLLED
        for (int first = 0; first < B::consumers; first += B::at_once) {
          float a[B::at_once][24];
          const std::uint64_t w = qkv_operand + it % 2 * B::qkv;  // descriptors count 16-byte words
          wgmma_fence();
          GAUGEBLOCK_UNROLL
          for (int m = 0; m < B::at_once; ++m) {
            const std::uint64_t n = n_operand + (first + m) * Steps * 256;
            GAUGEBLOCK_UNROLL
            for (int k = 0; k < Steps; ++k) {  // the small products first: the sum is truncated at its size
              wgmma::multiply_48(a[m], n + k * 256, w + k * 192 + 96, k > 0);
              wgmma::multiply_48(a[m], n + k * 256 + 128, w + k * 192, 1);
            }
            GAUGEBLOCK_UNROLL
            for (int k = 0; k < Steps; ++k) wgmma::multiply_48(a[m], n + k * 256, w + k * 192, 1);
          }
          wgmma_commit();
          wgmma::wait_all();
          if (first + B::at_once >= B::consumers) {
            warpgroup_barrier();  // every warp has used the weights before they are overwritten
            fetch_qkv(it + 2);
          }
          if (first == 0) barrier_wait(&keys_empty[it % 2], it / 2 % 2 ^ 1);
          GAUGEBLOCK_UNROLL
          for (int m = 0; m < B::at_once; ++m) {
            float(&c)[24] = a[m];
            uint4* to = keys + ((first + m) * 4 + own) * 192 + lane;
            uint4 v, u;
            GAUGEBLOCK_UNROLL
            for (int j = 0; j < 8; ++j) {
              c[j] *= q_scale;
              c[8 + j] *= k_scale;
              c[16 + j] *= to_operand;
            }
            split(c[0], c[1], v.x, u.x);
            split(c[2], c[3], v.y, u.y);
            split(c[4], c[5], v.z, u.z);
            split(c[6], c[7], v.w, u.w);
            to[128] = v;
            to[160] = u;
            GAUGEBLOCK_UNROLL
            for (int i = 0; i < 2; ++i) {
              split(c[8 + 2 * i], c[9 + 2 * i], v.x, v.z);
              split(c[12 + 2 * i], c[13 + 2 * i], v.y, v.w);
              to[32 * i] = v;
            }
            GAUGEBLOCK_UNROLL
            for (int j = 0; j < 2; ++j) {
              split(c[16 + 4 * j], c[17 + 4 * j], v.x, v.z);
              split(c[18 + 4 * j], c[19 + 4 * j], v.y, v.w);
              to[64 + 32 * j] = make_uint4(transpose(v.x), transpose(v.y), transpose(v.z), transpose(v.w));
            }
          }
        }
        barrier_arrive(&keys_full[it % 2]);
        fetch_out(it + 1);
      }
    }
  } else {  // ---- the consumers
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(B::consumer_registers));
    const std::uint64_t out_operand = wgmma::operand(out_ring);
    for (int sequence = static_cast<int>(blockIdx.x); sequence < pass.count;
         sequence += static_cast<int>(gridDim.x)) {
      float y[8 * Steps];
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < 8 * Steps; ++j) y[j] = 0;
      GAUGEBLOCK_ROLLED
      for (int head = 0; head < Steps; ++head, ++it) {
        const uint4* keys = key_ring + it % 2 * B::keys + lane;
        const float rest = weights.rest_scale[head];
        barrier_wait(&keys_full[it % 2], it / 2 % 2);
        const Fragment q = [&]() -> Fragment {
          const uint4 a = keys[warp * 192 + 128], b = keys[warp * 192 + 160];
          return {{a.x, a.y, a.z, a.w}, {b.x, b.y, b.z, b.w}};
        }();
        float o[2][4], sum0, sum1;
        attend<true, Full, MaxL, B::chunk>(q, keys, L, 1, o, sum0, sum1);
        const float least = 0.0625F * static_cast<float>(L), most = 60000;
        const bool right = rest == 1 && sum0 >= least && sum0 <= most && sum1 >= least && sum1 <= most;
        if (!__all_sync(0xffffffffU, right)) attend<false, Full, MaxL, 16>(q, keys, L, rest, o, sum0, sum1);
        barrier_arrive(&keys_empty[it % 2]);
        const float inverse0 = reciprocal(sum0), inverse1 = reciprocal(sum1);
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
        for (int j = 0; j < 4; ++j) o[i][j] *= j < 2 ? inverse0 : inverse1;
        Fragment f;
        to_fragment(f, o[0], o[1]);
        barrier_wait(&out_full[it % 4], it / 4 % 2);
        const std::uint64_t hi = out_operand + it % 4 * B::out, lo = hi + B::out / 2;
        float
            product[8 * Steps];  // of this head alone: y adds with rounding, where the tensor core truncates
        wgmma_fence();
        wgmma::multiply(product, f.hi, lo, 0);
        wgmma::multiply(product, f.lo, hi, 1);
        wgmma::multiply(product, f.hi, hi, 1);
        wgmma_commit();
        wgmma::wait_all();
        if (lane == 0) barrier_arrive(&out_empty[it % 4]);
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < 8 * Steps; ++j) y[j] += product[j];
      }

      const Index b = sequence / pass.others, other = sequence % pass.others;
      const int l0 = warp * 16 + g;
      const float* from = pass.x + b * pass.x_batch + other * pass.x_other + l0 * pass.x_token + 4 * t;
      float* to = pass.y + b * pass.y_batch + other * pass.y_other + l0 * pass.y_token + 4 * t;
      constexpr int together = Steps < 4 ? Steps : 4;  // steps whose loads are in flight at once
      GAUGEBLOCK_UNROLL
      for (int k0 = 0; k0 < Steps; k0 += together) {
        float4 residual[2 * together];
        GAUGEBLOCK_UNROLL
        for (int k = 0; k < together; ++k) GAUGEBLOCK_UNROLL
        for (int half = 0; half < 2; ++half)
          if (Full || l0 + 8 * half < L)
            residual[2 * k + half] =
                *reinterpret_cast<const float4*>(from + 8 * half * pass.x_token + 16 * (k0 + k));
        GAUGEBLOCK_UNROLL
        for (int k = 0; k < together; ++k) {
          const float4 scale = *reinterpret_cast<const float4*>(weights.out_scale + 16 * (k0 + k) + 4 * t);
          const float4 bias = *reinterpret_cast<const float4*>(weights.out_bias + 16 * (k0 + k) + 4 * t);
          GAUGEBLOCK_UNROLL
          for (int half = 0; half < 2; ++half) {
            if (!Full && l0 + 8 * half >= L) continue;
            float4 v = residual[2 * k + half];
            const float* sum = y + 8 * (k0 + k) + 2 * half;
            v.x += fmaf(sum[0], scale.x, bias.x);
            v.y += fmaf(sum[1], scale.y, bias.y);
            v.z += fmaf(sum[4], scale.z, bias.z);
            v.w += fmaf(sum[5], scale.w, bias.w);
            *reinterpret_cast<float4*>(to + 8 * half * pass.y_token + 16 * (k0 + k)) = v;
          }
        }
      }
    }
  }
}

Shape shape_of(const AxialPass& pass) {
  const int steps = static_cast<int>(pass.D / 16);
  return {static_cast<int>(pass.D), static_cast<int>(pass.heads), 16, steps, 1, Packing::core_matrices};
}

template <int MaxL, int Steps>
void launch_for(const AxialPass& pass, const Weights& weights, LaunchContext& context) {
  using B = Block<MaxL, Steps>;
  const Sequences sequences{pass.x.data,
                            pass.y.data,
                            static_cast<int>(pass.sequences()),
                            static_cast<int>(pass.others),
                            static_cast<int>(pass.L),
                            pass.x.stride[0],
                            pass.x.stride[1],
                            pass.x.stride[2],
                            pass.y.stride[0],
                            pass.y.stride[1],
                            pass.y.stride[2],
                            pass.eps};
  constexpr Index multiprocessors = 132;  // of an H100 or H200 with all of them; fewer only queue
  const dim3 grid = grid_of(std::min(pass.sequences(), multiprocessors));
  const auto start = [&](const auto& kernel) {
    launch(kernel, grid, dim3(B::threads), B::words * sizeof(uint4), context, sequences, weights);
  };
  if (pass.L == MaxL)
    start(GAUGEBLOCK_KERNEL(warpgroup_pass_kernel<MaxL, Steps, true>));
  else
    start(GAUGEBLOCK_KERNEL(warpgroup_pass_kernel<MaxL, Steps, false>));
}

/// One pass on prepared memory: see workspace_run.h.
struct WarpgroupPass {
  static std::size_t weights_bytes(const AxialPass& pass) {
    return split_half::weights_bytes(shape_of(pass));
  }
  static std::size_t slots_bytes(const AxialPass&) { return 0; }
  static void prepare(const AxialPass& pass, void* weights, LaunchContext& context) {
    launch_prepare(pass, shape_of(pass), weights, context);
  }
  static void launch(const AxialPass& pass, void* memory, void*, bool, LaunchContext& context) {
    const Weights weights = weights_in(memory, shape_of(pass));
    if (pass.D == 64) return launch_for<256, 4>(pass, weights, context);
    launch_for<128, 8>(pass, weights, context);
  }
};

std::optional<std::string> pass_declines(const AxialPass& pass) {
  if (pass.D != 64 && pass.D != 128) return std::to_string(pass.D) + " channels; 64 and 128 are taken";
  if (pass.D != 16 * pass.heads)
    return "heads of " + std::to_string(pass.D / pass.heads) + " channels; 16 are taken";
  const Index most = pass.D == 64 ? 256 : 128;
  if (pass.L > most)
    return std::to_string(pass.L) + " tokens; with " + std::to_string(pass.D) + " channels at most " +
           std::to_string(most) + " are taken";
  if (!reads_vectors(pass)) return "channels have to be contiguous and tokens aligned to 16 bytes";
  if (pass.sequences() > (Index{1} << 26))
    return std::to_string(pass.sequences()) + " sequences are too many";
  return std::nullopt;
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  if (auto reason =
          copy_declines(arguments.batches() * arguments.height() * arguments.width() * arguments.channels()))
    return reason;
  // Of the passes as they will run: the column pass reads what the row pass has written.
  std::optional<std::string> reason;
  for_each_pass(arguments, [&](const AxialPass& pass, bool along_rows) {
    if (reason) return;
    reason = pass_declines(pass);
    if (reason) reason = (along_rows ? "row pass: " : "column pass: ") + *reason;
  });
  return reason;
}

}  // namespace

AxialKernel warpgroup_pass_split_half() {
  return {
      "warpgroup_pass_split_half",
      "one warpgroup makes q, k and v, the others attend: wgmma for the weights, softmax without a maximum "
      "where that is safe",
      "online_softmax",
      declines,
      OnWorkspace<WarpgroupPass>::run,
      true,
      OnWorkspace<WarpgroupPass>::steps(),
      "sm_90"};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
