// Differs from all before: a whole pass is one kernel on tensor cores, at float32's accuracy. Matrix products
// take operands split into two float16 (split_half.h) and add in float32; columns are read and written in
// place; scores stay in registers, with a running maximum where a sequence has more keys than those hold.
//
//     [n, split]  →  q, k, v of a head  →  softmax(q kᵀ / √d) v  →  y = x + (o · W_outᵀ + b_out)
//
// A warp owns tiles of 16 tokens from the LayerNorm to the residual; warps of a block meet at k and v (in the
// first shape at n and o, too).
// Two shapes of the same steps:
//
// - `short_sequence_kernel`: up to 64 tokens, 32 or 64 channels in heads of 16, contiguous channels. A warp a
//   (tile, head), everything in registers and shared memory, weights brought in by the bulk copy engine; the
//   second pass's come while the first one runs. B=4, 32×32, D=64 takes 8.5 µs on an H200 (replays of a
//   graph), of which two empty kernels would take 1.1 to 1.8. Bound by latency: a pass is one chain of
//   dependent steps. By clock stamps, in the variant whose second pass watches for its tokens in the L2
//   cache, 6700 cycles a pass: the products with W_q, W_k and W_v take 1750 (the tensor cores some 1000 of
//   them, by count), the first pass's LayerNorm with its wait for the tokens 1400, attention 950, the
//   projection 950. What helped: W_out fetched behind the other weights and read before the block meets at o,
//   tokens asked for before the first barrier, one instruction for four channels of y (9.1 → 8.8), and for 64
//   channels the LayerNorm shared by the warps of a tile (8.7). What cost some 0.3: sums of v and of y rounded
//   instead of truncated (error 1.52 → 1.28 times that of float32). What did not help: weights multicast to
//   clusters of 2 or 4 blocks (9.9, 12.6), letting the second pass in later, both passes in one launch or the
//   second one watching for its tokens, each head's warp fetching its own weights (+0.1), barriers for the
//   warps of a tile or a head alone (-0.1, or +0.3 with W_out read early), the first W_q, W_k and W_v read
//   before the LayerNorm is there (0 to +0.2). A further gain needs another way to multiply: those with W_q,
//   W_k, W_v on wgmma, say.
// - `any_shape_kernel`: heads up to 128, channels up to 256, any number of tokens, any strides. What a warp
//   hands on to itself (n, q, o) and to others (k, v) lies in a workspace that the caches hold. B=8, 128×128,
//   D=128 takes 1545 µs, 3.7 times what `warpgroup_pass_split_half` takes, for the same products: it waits
//   for those loads. A further gain needs k and v in shared memory, and weights brought there ahead of their
//   use.
#include <algorithm>
#include <type_traits>

#include "gaugeblock/gpu/axial/bulk_copy.h"
#include "gaugeblock/gpu/axial/split_half.h"
#include "gaugeblock/gpu/axial/workspace_run.h"
#include "gaugeblock/gpu/runtime/dependent_launch.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

using namespace hopper;
using namespace split_half;

// ---- any shape

constexpr int most_warps = 8;

/// Sizes in 16-byte words of what a block keeps in its part of the workspace. A token tile's fragments of n
/// and o: [step][hi, lo][32]; of q the same; of k and v: [head step][2][32] each.
struct SlotLayout {
  Index q, keys, o, total;

  __host__ __device__ SlotLayout(Index tiles, const Shape& shape)
      : q(tiles * shape.steps * 64),
        keys(q + tiles * shape.head_steps * 64),
        o(keys + tiles * shape.head_steps * 128),
        total(o + tiles * shape.heads * shape.head_steps * 64) {}
};

__device__ __forceinline__ void store_fragment(uint4* to, const Fragment& f) {
  to[0] = make_uint4(f.hi[0], f.hi[1], f.hi[2], f.hi[3]);
  to[32] = make_uint4(f.lo[0], f.lo[1], f.lo[2], f.lo[3]);
}

__device__ __forceinline__ Fragment load_fragment(const uint4* from) {
  const uint4 hi = from[0], lo = from[32];
  return {{hi.x, hi.y, hi.z, hi.w}, {lo.x, lo.y, lo.z, lo.w}};
}

/// Four neighbouring channels of a token; 0 behind the last one.
__device__ __forceinline__ float4 load_channels(const float* token, Index stride, Index i, Index D,
                                                bool vectors) {
  if (vectors) return *reinterpret_cast<const float4*>(token + i);
  float4 v = make_float4(0, 0, 0, 0);
  if (i < D) v.x = token[i * stride];
  if (i + 1 < D) v.y = token[(i + 1) * stride];
  if (i + 2 < D) v.z = token[(i + 2) * stride];
  if (i + 3 < D) v.w = token[(i + 3) * stride];
  return v;
}

__device__ __forceinline__ float add_squares(float4 v, float mean, Index i, Index D, float sum) {
  const float x = v.x - mean, y = v.y - mean, z = v.z - mean, w = v.w - mean;
  if (i < D) sum = fmaf(x, x, sum);
  if (i + 1 < D) sum = fmaf(y, y, sum);
  if (i + 2 < D) sum = fmaf(z, z, sum);
  if (i + 3 < D) sum = fmaf(w, w, sum);
  return sum;
}

__device__ __forceinline__ float normalized(float x, float mean, float root, float weight, float bias) {
  return fmaf((x - mean) * root, weight, bias);
}

__device__ __forceinline__ void add(float (&sum)[2][4], const float (&part)[2][4]) {
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
  for (int j = 0; j < 4; ++j) sum[i][j] += part[i][j];
}

/// HeadSteps: ⌈d/16⌉, rounded up to a power of two.
template <int HeadSteps>
__global__ void __launch_bounds__(32 * most_warps)
    any_shape_kernel(AxialPass pass, Shape shape, Weights weights, uint4* slots, bool vectors) {
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  const int warp = static_cast<int>(threadIdx.x / 32), warps = static_cast<int>(blockDim.x / 32);
  const Index L = pass.L, D = pass.D;
  const int tiles = static_cast<int>(ceil_div(L, 16)), steps = shape.steps;
  const SlotLayout layout(tiles, shape);
  uint4* const slot = slots + blockIdx.x * layout.total + lane;
  constexpr int key_words = HeadSteps * 128;  // of a tile

  for (Index sequence = blockIdx.x; sequence < pass.sequences(); sequence += gridDim.x) {
    const Index b = sequence / pass.others, other = sequence % pass.others;
    const float* x = pass.x.data + pass.x.at(b, other, 0, 0);
    float* y = pass.y.data + pass.y.at(b, other, 0, 0);

    // n of the warp's tiles. Rows behind the last token repeat it; as keys they are masked, and never stored.
    for (int tile = warp; tile < tiles; tile += warps) {
      const Index l0 = min(static_cast<Index>(16 * tile + g), L - 1), l1 = min(l0 + 8, L - 1);
      const float *x0 = x + l0 * pass.x.stride[2], *x1 = x + l1 * pass.x.stride[2];
      const Index stride = pass.x.stride[3];
      const float count = static_cast<float>(D);
      float sum0 = 0, sum1 = 0;
      for (int k = 0; k < steps; ++k) {
        const float4 v0 = load_channels(x0, stride, 16 * k + 4 * t, D, vectors);
        const float4 v1 = load_channels(x1, stride, 16 * k + 4 * t, D, vectors);
        sum0 += (v0.x + v0.y) + (v0.z + v0.w);
        sum1 += (v1.x + v1.y) + (v1.z + v1.w);
      }
      const float mean0 = quad_sum(sum0) / count, mean1 = quad_sum(sum1) / count;
      sum0 = sum1 = 0;
      for (int k = 0; k < steps; ++k) {
        const Index i = 16 * k + 4 * t;
        sum0 = add_squares(load_channels(x0, stride, i, D, vectors), mean0, i, D, sum0);
        sum1 = add_squares(load_channels(x1, stride, i, D, vectors), mean1, i, D, sum1);
      }
      const float root0 = rsqrtf(quad_sum(sum0) / count + pass.eps);
      const float root1 = rsqrtf(quad_sum(sum1) / count + pass.eps);
      for (int k = 0; k < steps; ++k) {
        const int i = 16 * k + 4 * t;
        const float4 w = *reinterpret_cast<const float4*>(weights.norm_weight + i);
        const float4 bias = *reinterpret_cast<const float4*>(weights.norm_bias + i);
        const float4 v0 = load_channels(x0, stride, i, D, vectors);
        const float4 v1 = load_channels(x1, stride, i, D, vectors);
        Fragment n;
        split(normalized(v0.x, mean0, root0, w.x, bias.x), normalized(v0.y, mean0, root0, w.y, bias.y),
              n.hi[0], n.lo[0]);
        split(normalized(v1.x, mean1, root1, w.x, bias.x), normalized(v1.y, mean1, root1, w.y, bias.y),
              n.hi[1], n.lo[1]);
        split(normalized(v0.z, mean0, root0, w.z, bias.z), normalized(v0.w, mean0, root0, w.w, bias.w),
              n.hi[2], n.lo[2]);
        split(normalized(v1.z, mean1, root1, w.z, bias.z), normalized(v1.w, mean1, root1, w.w, bias.w),
              n.hi[3], n.lo[3]);
        store_fragment(slot + (static_cast<Index>(tile) * steps + k) * 64, n);
      }
    }

    for (int head = 0; head < shape.heads; ++head) {
      const uint4* packed = weights.packed + static_cast<Index>(head) * shape.head_words() + lane;
      __syncthreads();  // the keys of the head before are used before new ones overwrite them
      for (int tile = warp; tile < tiles; tile += warps) {
        const uint4* n = slot + static_cast<Index>(tile) * steps * 64;
        uint4* keys = slot + layout.keys + static_cast<Index>(tile) * key_words;
        GAUGEBLOCK_ROLLED
        for (int block = 0; block < 3 * HeadSteps; ++block) {  // 16 channels of q, then of k, then of v
          const int part = block / HeadSteps, step = block % HeadSteps;
          float sum[2][4] = {}, small[2][4] = {};
          for (int k = 0; k < steps; ++k) {
            const Fragment a = load_fragment(n + k * 64);
            const uint4* w = packed + ((k * 3 + part) * 2 * HeadSteps + 2 * step) * 32;
            float large[2][4] = {};  // added to the sum with rounding, where the tensor core would truncate
            multiply_split(large[0], small[0], a, w[0]);
            multiply_split(large[1], small[1], a, w[32]);
            add(sum, large);
          }
          add(sum, small);
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
          for (int j = 0; j < 4; ++j) sum[i][j] *= to_operand;
          Fragment f;
          to_fragment(f, sum[0], sum[1]);
          if (part == 0) {
            store_fragment(slot + layout.q + (static_cast<Index>(tile) * HeadSteps + step) * 64, f);
          } else if (part == 1) {  // tokens are columns of the operand B: 8 of them a word
            keys[(2 * step) * 32] = make_uint4(f.hi[0], f.hi[2], f.lo[0], f.lo[2]);
            keys[(2 * step + 1) * 32] = make_uint4(f.hi[1], f.hi[3], f.lo[1], f.lo[3]);
          } else {  // tokens are rows: 8 channels a word
            GAUGEBLOCK_UNROLL
            for (int i = 0; i < 2; ++i)
              keys[(2 * HeadSteps + 2 * step + i) * 32] =
                  make_uint4(transpose(f.hi[2 * i]), transpose(f.hi[2 * i + 1]), transpose(f.lo[2 * i]),
                             transpose(f.lo[2 * i + 1]));
          }
        }
      }
      __syncthreads();  // k and v of all tokens are there before the first score

      const float scale = weights.logit_scale[head];
      for (int tile = warp; tile < tiles; tile += warps) {
        Fragment q[HeadSteps];
        GAUGEBLOCK_UNROLL
        for (int step = 0; step < HeadSteps; ++step)
          q[step] = load_fragment(slot + layout.q + (static_cast<Index>(tile) * HeadSteps + step) * 64);
        float o[2 * HeadSteps][4] = {};
        float top0 = -INFINITY, top1 = -INFINITY, sum0 = 0, sum1 = 0;
        GAUGEBLOCK_ROLLED
        for (int key_tile = 0; key_tile < tiles; ++key_tile) {
          const uint4* keys = slot + layout.keys + static_cast<Index>(key_tile) * key_words;
          float s[2][4] = {}, small[2][4] = {};
          GAUGEBLOCK_UNROLL
          for (int step = 0; step < HeadSteps; ++step) {
            float large[2][4] = {};
            GAUGEBLOCK_UNROLL
            for (int i = 0; i < 2; ++i)
              multiply_split(large[i], small[i], q[step], keys[(2 * step + i) * 32]);
            add(s, large);
          }
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
          for (int j = 0; j < 4; ++j) {
            const Index key = 16 * static_cast<Index>(key_tile) + 8 * i + 2 * t + j % 2;
            s[i][j] = key < L ? s[i][j] + small[i][j] : -INFINITY;
          }
          const float new0 = fmaxf(top0, quad_max(fmaxf(fmaxf(s[0][0], s[0][1]), fmaxf(s[1][0], s[1][1]))));
          const float new1 = fmaxf(top1, quad_max(fmaxf(fmaxf(s[0][2], s[0][3]), fmaxf(s[1][2], s[1][3]))));
          const float rescale0 = exp2_approximate((top0 - new0) * scale);
          const float rescale1 = exp2_approximate((top1 - new1) * scale);
          top0 = new0;
          top1 = new1;
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < 2; ++i) {
            s[i][0] = exp2_approximate(fmaf(s[i][0] - top0, scale, weight_exponent));
            s[i][1] = exp2_approximate(fmaf(s[i][1] - top0, scale, weight_exponent));
            s[i][2] = exp2_approximate(fmaf(s[i][2] - top1, scale, weight_exponent));
            s[i][3] = exp2_approximate(fmaf(s[i][3] - top1, scale, weight_exponent));
          }
          sum0 = fmaf(sum0, rescale0, (s[0][0] + s[0][1]) + (s[1][0] + s[1][1]));
          sum1 = fmaf(sum1, rescale1, (s[0][2] + s[0][3]) + (s[1][2] + s[1][3]));
          Fragment p;
          to_fragment(p, s[0], s[1]);
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < 2 * HeadSteps; ++i) {
            float large[4] = {}, less[4] = {};
            multiply_split(large, less, p, keys[(2 * HeadSteps + i) * 32]);
            GAUGEBLOCK_UNROLL
            for (int j = 0; j < 4; ++j)
              o[i][j] = fmaf(o[i][j], j < 2 ? rescale0 : rescale1, large[j] + less[j]);
          }
        }
        const float inverse0 = reciprocal(quad_sum(sum0)), inverse1 = reciprocal(quad_sum(sum1));
        GAUGEBLOCK_UNROLL
        for (int step = 0; step < HeadSteps; ++step) {
          GAUGEBLOCK_UNROLL
          for (int i = 2 * step; i < 2 * step + 2; ++i) GAUGEBLOCK_UNROLL
          for (int j = 0; j < 4; ++j) o[i][j] *= j < 2 ? inverse0 : inverse1;
          Fragment f;
          to_fragment(f, o[2 * step], o[2 * step + 1]);
          store_fragment(
              slot + layout.o + ((static_cast<Index>(tile) * shape.heads + head) * HeadSteps + step) * 64, f);
        }
      }
    }

    for (int tile = warp; tile < tiles; tile += warps) {
      const uint4* o = slot + layout.o + static_cast<Index>(tile) * shape.heads * HeadSteps * 64;
      for (int block = 0; block < steps; ++block) {  // 16 columns of y
        float sum[2][4] = {}, small[2][4] = {};
        for (int head = 0; head < shape.heads; ++head) {
          const uint4* w = weights.packed + static_cast<Index>(head) * shape.head_words() +
                           shape.qkv_words() + 2 * block * 32 + lane;
          GAUGEBLOCK_UNROLL
          for (int step = 0; step < HeadSteps; ++step) {
            const Fragment a = load_fragment(o + (head * HeadSteps + step) * 64);
            float large[2][4] = {};
            multiply_split(large[0], small[0], a, w[2 * step * steps * 32]);
            multiply_split(large[1], small[1], a, w[(2 * step * steps + 1) * 32]);
            add(sum, large);
          }
        }
        add(sum, small);
        const int i = 16 * block + 4 * t;
        const float4 out_scale = *reinterpret_cast<const float4*>(weights.out_scale + i);
        const float4 bias = *reinterpret_cast<const float4*>(weights.out_bias + i);
        const float factor[4] = {out_scale.x, out_scale.y, out_scale.z, out_scale.w};
        const float shift[4] = {bias.x, bias.y, bias.z, bias.w};
        GAUGEBLOCK_UNROLL
        for (int half = 0; half < 2; ++half) {  // token g, then g + 8
          const Index l = 16 * static_cast<Index>(tile) + g + 8 * half;
          if (l >= L) continue;
          const float* from = x + l * pass.x.stride[2];
          float* to = y + l * pass.y.stride[2];
          GAUGEBLOCK_UNROLL
          for (int j = 0; j < 4; ++j) {
            if (i + j >= D) continue;
            const int at = 2 * half + j % 2;
            to[(i + j) * pass.y.stride[3]] =
                from[(i + j) * pass.x.stride[3]] + fmaf(sum[j / 2][at], factor[j], shift[j]);
          }
        }
      }
    }
  }
}

// ---- short sequences

constexpr int short_head = 16;

template <int Steps>
constexpr int short_head_words = Steps * 256;  // W_q, W_k, W_v: 192 a step; W_out: 64

/// Whether the warps of a tile share its LayerNorm. Where there are two, that takes longer than it saves.
template <int Steps>
constexpr bool shares_norm = Steps == 4;

/// Of n in shared memory: the fragment of a step, and words that keep those of neighbours in other banks.
constexpr int norm_step_words = 64 + 4;

template <int Steps, int Tiles>
constexpr int short_words =  // weights, then k and v of every head, then o, then n where warps share it
    Steps* short_head_words<Steps> + Steps* Tiles * 128 + Steps* Tiles * 64 +
    (shares_norm<Steps> ? Steps * Tiles * norm_step_words : 0);

/// One store: nvcc makes four of it where it is left to it.
__device__ __forceinline__ void store_four(float* to, const float4& v) {
  asm volatile("st.global.v4.f32 [%0],{%1,%2,%3,%4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}

/// The LayerNorm of a tile, done by each of its warps for itself: a quad of lanes has two tokens.
template <int Steps>
struct OwnNorm {
  const float *x0, *x1;
  float4 weight[Steps], bias[Steps], v0[Steps], v1[Steps];

  /// Loads the parameters. token(l) is where token l lies.
  template <class Token>
  __device__ __forceinline__ OwnNorm(const Weights& weights, const Token& token, int tile, int, int lane)
      : x0(token(16 * tile + lane / 4) + 4 * (lane % 4)),
        x1(token(16 * tile + lane / 4 + 8) + 4 * (lane % 4)) {
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) {
      weight[k] = load_four(weights.norm_weight + 16 * k + 4 * (lane % 4));
      bias[k] = load_four(weights.norm_bias + 16 * k + 4 * (lane % 4));
    }
  }

  __device__ __forceinline__ void load_tokens() {
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) {
      v0[k] = load_four(x0 + 16 * k);
      v1[k] = load_four(x1 + 16 * k);
    }
  }

  /// n of the tile, and the columns of its tokens that the warp writes.
  __device__ __forceinline__ void finish(Fragment (&n)[Steps], float4& residual0, float4& residual1, uint4*,
                                         float eps, int head, int) {
    residual0 = v0[0];
    residual1 = v1[0];
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) {
      if (k != head) continue;
      residual0 = v0[k];
      residual1 = v1[k];
    }
    float root0, root1;
    center(v0, v1, eps, root0, root1);
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) n[k] = norm_fragment(v0[k], v1[k], root0, root1, weight[k], bias[k]);
  }
};

/// The same, shared by the tile's warps: `lanes` lanes have two tokens, whose fragments all warps then load.
template <int Steps>
struct SharedNorm {
  static constexpr int lanes = 4 * Steps,
                       at_once = 32 / lanes;  // tokens of a warp, and as many 8 behind them
  const float *x0, *x1, *from0, *from1;
  float4 weight, bias, v0, v1, column0, column1;

  template <class Token>
  __device__ __forceinline__ SharedNorm(const Weights& weights, const Token& token, int tile, int head,
                                        int lane)
      : x0(token(16 * tile + head * at_once + lane / lanes) + 4 * (lane % lanes)),
        x1(token(16 * tile + head * at_once + lane / lanes + 8) + 4 * (lane % lanes)),
        from0(token(16 * tile + lane / 4) + 16 * head + 4 * (lane % 4)),
        from1(token(16 * tile + lane / 4 + 8) + 16 * head + 4 * (lane % 4)),
        weight(load_four(weights.norm_weight + 4 * (lane % lanes))),
        bias(load_four(weights.norm_bias + 4 * (lane % lanes))) {}

  __device__ __forceinline__ void load_tokens() {
    v0 = load_four(x0);
    v1 = load_four(x1);
    column0 = load_four(from0);
    column1 = load_four(from1);
  }

  __device__ __forceinline__ static float token_sum(float v) {
    GAUGEBLOCK_UNROLL
    for (int partner = 1; partner < lanes; partner *= 2) v += __shfl_xor_sync(0xffffffffU, v, partner);
    return v;
  }

  /// `shared` is the tile's: [Steps][norm_step_words].
  __device__ __forceinline__ void finish(Fragment (&n)[Steps], float4& residual0, float4& residual1,
                                         uint4* shared, float eps, int head, int lane) {
    constexpr float inverse = 1.0F / (16 * Steps);
    const float mean0 = token_sum(sum_of(v0)) * inverse, mean1 = token_sum(sum_of(v1)) * inverse;
    v0 = minus(v0, mean0);
    v1 = minus(v1, mean1);
    const float root0 = rsqrtf(fmaf(token_sum(square_sum(v0)), inverse, eps));
    const float root1 = rsqrtf(fmaf(token_sum(square_sum(v1)), inverse, eps));
    const int own = head * at_once + lane / lanes, step = lane % lanes / 4;
    store_fragment(shared + step * norm_step_words + 4 * own + lane % 4,
                   norm_fragment(v0, v1, root0, root1, weight, bias));
    __syncthreads();  // n of the tile is there
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) n[k] = load_fragment(shared + k * norm_step_words + lane);
    residual0 = column0;
    residual1 = column1;
  }
};

/// D = 16·Steps in Steps heads, at most 16·Tiles tokens. Warp `tile * Steps + head`.
template <int Steps, int Tiles>
__global__ void __launch_bounds__(32 * Steps * Tiles, Steps* Tiles <= 8 ? 2 : 1)
    short_sequence_kernel(AxialPass pass, Weights weights) {
  extern __shared__ __align__(128) unsigned char short_sequence_shared[];
  uint4* const packed = reinterpret_cast<uint4*>(short_sequence_shared);
  uint4* const keys = packed + Steps * short_head_words<Steps>;
  __shared__ __align__(8) std::uint64_t arrived[Steps];  // W_q, W_k, W_v of a head have
  __shared__ __align__(8) std::uint64_t out_arrived;     // W_out has
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  const int warp = static_cast<int>(threadIdx.x / 32), tile = warp / Steps, head = warp % Steps;
  const int L = static_cast<int>(pass.L);

  if (threadIdx.x == 0) {
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < Steps; ++i) barrier_init(&arrived[i], 1);
    barrier_init(&out_arrived, Steps);
    fence_barrier_init();
    fence_async_proxy();
    constexpr int out_words = Steps * 64, qkv_words = Steps * 192;
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < Steps; ++i)  // first what is needed first
      bulk_load(packed + i * short_head_words<Steps>, weights.packed + i * short_head_words<Steps>,
                qkv_words * sizeof(uint4), &arrived[i]);
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < Steps; ++i)
      bulk_load(packed + i * short_head_words<Steps> + qkv_words,
                weights.packed + i * short_head_words<Steps> + qkv_words, out_words * sizeof(uint4),
                &out_arrived);
  }
  // The next pass may come onto the multiprocessor and fetch its weights; its tokens it waits for.
  let_next_kernel_begin();
  const float scale = weights.logit_scale[head];
  const float4 out_scale = *reinterpret_cast<const float4*>(weights.out_scale + 16 * head + 4 * t);
  const float4 bias = *reinterpret_cast<const float4*>(weights.out_bias + 16 * head + 4 * t);
  const float* x = pass.x.data + pass.x.at(blockIdx.y, blockIdx.x, 0, 0);
  float* y = pass.y.data + pass.y.at(blockIdx.y, blockIdx.x, 0, 0);
  // Rows behind the last token repeat it; as keys they are masked, and never stored.
  const int l0 = 16 * tile + g, l1 = l0 + 8;
  const auto token = [&](int l) { return x + min(l, L - 1) * pass.x.stride[2]; };
  std::conditional_t<shares_norm<Steps>, SharedNorm<Steps>, OwnNorm<Steps>> norm(weights, token, tile, head,
                                                                                 lane);
  wait_for_kernel_in_front();
  norm.load_tokens();
  __syncthreads();  // the barriers are ready before anyone waits at them; the loads are on their way

  Fragment n[Steps];
  float4 residual0, residual1;  // of the columns of y that this warp writes
  norm.finish(n, residual0, residual1, keys + Steps * Tiles * 192 + tile * Steps * norm_step_words, pass.eps,
              head, lane);

  Fragment q;
  uint4* const head_keys = keys + head * Tiles * 128 + lane;  // a tile: k [2][32], v [2][32]
  {
    // q, k: 16 tokens × 8 channels; v: 16 channels × 8 tokens, whose large parts are summed with rounding, not
    // by the tensor core, which truncates: nothing behind v averages that out.
    float large[6][4] = {}, small[6][4] = {};
    const uint4* w = packed + head * short_head_words<Steps> + lane;
    barrier_wait(&arrived[head], 0);
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) {
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < 4; ++j) multiply_split(large[j], small[j], n[k], w[(6 * k + j) * 32]);
      const uint4 high = w[(6 * k + 4) * 32], low = w[(6 * k + 5) * 32];
      const std::uint32_t hi[4] = {high.x, high.y, high.z, high.w}, lo[4] = {low.x, low.y, low.z, low.w};
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < 2; ++i) {
        float part[4] = {};
        multiply(small[4 + i], hi, n[k].lo[i], n[k].lo[2 + i]);
        multiply(part, hi, n[k].hi[i], n[k].hi[2 + i]);
        multiply(small[4 + i], lo, n[k].hi[i], n[k].hi[2 + i]);
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < 4; ++j) large[4 + i][j] += part[j];
      }
    }
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 6; ++j) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 4; ++i) large[j][i] = (large[j][i] + small[j][i]) * to_operand;
    to_fragment(q, large[0], large[1]);
    uint4* const own = head_keys + tile * 128;
    uint4 v;
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      split(large[2][2 * i], large[2][2 * i + 1], v.x, v.z);
      split(large[3][2 * i], large[3][2 * i + 1], v.y, v.w);
      own[32 * i] = v;
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      split(large[4][2 * i], large[4][2 * i + 1], v.x, v.z);
      split(large[5][2 * i], large[5][2 * i + 1], v.y, v.w);
      own[64 + 32 * i] = v;
    }
  }
  barrier_wait(&out_arrived, 0);  // it has come long since, and here nobody waits for this warp alone
  __syncthreads();                // k and v of all tokens are there before the first score

  uint4* const outputs = keys + Steps * Tiles * 128 + tile * Steps * 64 + lane;
  uint4 out[Steps][2];  // W_out of the warp's columns
  {
    float s[2 * Tiles][4] = {}, small[2 * Tiles][4] = {}, top0 = -INFINITY, top1 = -INFINITY;
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 2 * Tiles; ++j)
      multiply_split(s[j], small[j], q, head_keys[(j / 2) * 128 + (j % 2) * 32]);
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 2 * Tiles; ++j) {
      const int key = 8 * j + 2 * t;
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < 4; ++i) {
        s[j][i] += small[j][i];
        if (L < 16 * Tiles && key + i % 2 >= L) s[j][i] = -INFINITY;
      }
      top0 = fmaxf(top0, fmaxf(s[j][0], s[j][1]));
      top1 = fmaxf(top1, fmaxf(s[j][2], s[j][3]));
    }
    top0 = quad_max(top0);
    top1 = quad_max(top1);
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Steps; ++k) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i)
      out[k][i] = packed[k * short_head_words<Steps> + Steps * 192 + (2 * head + i) * 32 + lane];
    __syncwarp();  // nvcc would put them right in front of the store that other warps wait for
    float sum0 = 0, sum1 = 0;
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 2 * Tiles; ++j) {
      s[j][0] = exp2_approximate(fmaf(s[j][0] - top0, scale, weight_exponent));
      s[j][1] = exp2_approximate(fmaf(s[j][1] - top0, scale, weight_exponent));
      s[j][2] = exp2_approximate(fmaf(s[j][2] - top1, scale, weight_exponent));
      s[j][3] = exp2_approximate(fmaf(s[j][3] - top1, scale, weight_exponent));
      sum0 += s[j][0] + s[j][1];
      sum1 += s[j][2] + s[j][3];
    }
    float o[2][4] = {}, less[2][4] = {};
    GAUGEBLOCK_UNROLL
    for (int k = 0; k < Tiles; ++k) {
      Fragment p;
      to_fragment(p, s[2 * k], s[2 * k + 1]);
      multiply_split(o[0], less[0], p, head_keys[k * 128 + 64]);
      multiply_split(o[1], less[1], p, head_keys[k * 128 + 96]);
    }
    const float inverse0 = reciprocal(quad_sum(sum0)), inverse1 = reciprocal(quad_sum(sum1));
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
    for (int j = 0; j < 4; ++j) o[i][j] = (o[i][j] + less[i][j]) * (j < 2 ? inverse0 : inverse1);
    to_fragment(q, o[0], o[1]);
    store_fragment(outputs + head * 64, q);
  }
  __syncthreads();  // o of all heads is there before its projection

  float sum[2][4] = {}, small[2][4] = {}, less[2][4] = {};
  GAUGEBLOCK_UNROLL
  for (int k = 0; k < Steps; ++k) {
    const Fragment a = load_fragment(outputs + k * 64);
    float large[2][4] = {};  // of a head by itself: sums of heads are rounded, the tensor core's truncated
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint4 u = out[k][i];
      multiply(small[i], a.hi, u.z, u.w);
      multiply(large[i], a.hi, u.x, u.y);
      multiply(less[i], a.lo, u.x, u.y);
    }
    add(sum, large);
  }
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 2; ++i) GAUGEBLOCK_UNROLL
  for (int j = 0; j < 4; ++j) sum[i][j] += small[i][j] + less[i][j];
  float* to = y + l0 * pass.y.stride[2] + 16 * head + 4 * t;
  residual0.x += fmaf(sum[0][0], out_scale.x, bias.x);
  residual0.y += fmaf(sum[0][1], out_scale.y, bias.y);
  residual0.z += fmaf(sum[1][0], out_scale.z, bias.z);
  residual0.w += fmaf(sum[1][1], out_scale.w, bias.w);
  residual1.x += fmaf(sum[0][2], out_scale.x, bias.x);
  residual1.y += fmaf(sum[0][3], out_scale.y, bias.y);
  residual1.z += fmaf(sum[1][2], out_scale.z, bias.z);
  residual1.w += fmaf(sum[1][3], out_scale.w, bias.w);
  if (l0 < L) store_four(to, residual0);
  if (l1 < L) store_four(to + 8 * pass.y.stride[2], residual1);
}

// ---- which of the two, and where its memory lies

bool is_short(const AxialPass& pass) {
  return (pass.D == 32 || pass.D == 64) && pass.D == short_head * pass.heads && pass.L <= 64 &&
         reads_vectors(pass) && pass.B <= 65535 && pass.others <= max_blocks;
}

Shape shape_of(const AxialPass& pass) {
  Shape shape{};
  shape.D = static_cast<int>(pass.D);
  shape.heads = static_cast<int>(pass.heads);
  shape.d = shape.D / shape.heads;
  shape.steps = static_cast<int>(ceil_div(pass.D, 16));
  shape.head_steps = 1;
  while (16 * shape.head_steps < shape.d) shape.head_steps *= 2;
  shape.packing = is_short(pass) ? Packing::values_transposed : Packing::fragments;
  return shape;
}

/// Blocks of any_shape_kernel: two on each of 132 multiprocessors, fewer where their workspace passes 1 GB.
Index slots_of(const AxialPass& pass) {
  const Index words = SlotLayout(ceil_div(pass.L, 16), shape_of(pass)).total;
  const Index fitting = std::max((Index{1} << 26) / words, Index{1});
  return std::min({pass.sequences(), Index{264}, fitting});
}

template <int Steps, int Tiles>
void launch_short(const AxialPass& pass, const Weights& weights, bool follows_pass, LaunchContext& context) {
  const dim3 grid(static_cast<unsigned>(pass.others), static_cast<unsigned>(pass.B));
  launch_dependent(GAUGEBLOCK_KERNEL(short_sequence_kernel<Steps, Tiles>), grid, dim3(32 * Steps * Tiles),
                   short_words<Steps, Tiles> * sizeof(uint4), follows_pass, context, pass, weights);
}

template <int HeadSteps>
void launch_any(const AxialPass& pass, const Shape& shape, const Weights& weights, void* slots,
                LaunchContext& context) {
  const Index tiles = ceil_div(pass.L, 16);
  launch(GAUGEBLOCK_KERNEL(any_shape_kernel<HeadSteps>), grid_of(slots_of(pass)),
         dim3(static_cast<unsigned>(32 * std::min<Index>(tiles, most_warps))), 0, context, pass, shape,
         weights, static_cast<uint4*>(slots), reads_vectors(pass) && pass.D % 16 == 0);
}

/// One pass on prepared memory: see workspace_run.h.
struct FusedPass {
  static std::size_t weights_bytes(const AxialPass& pass) {
    return split_half::weights_bytes(shape_of(pass));
  }
  static std::size_t slots_bytes(const AxialPass& pass) {
    if (is_short(pass)) return 0;
    return sizeof(uint4) * static_cast<std::size_t>(slots_of(pass)) *
           static_cast<std::size_t>(SlotLayout(ceil_div(pass.L, 16), shape_of(pass)).total);
  }

  static void prepare(const AxialPass& pass, void* weights, LaunchContext& context) {
    launch_prepare(pass, shape_of(pass), weights, context);
  }

  static void launch(const AxialPass& pass, void* memory, void* slots, bool follows_pass,
                     LaunchContext& context) {
    const Shape shape = shape_of(pass);
    const Weights weights = weights_in(memory, shape);
    if (is_short(pass)) {
      const int tiles = pass.L <= 16 ? 1 : pass.L <= 32 ? 2 : 4;
      const auto with = [&](auto steps) {
        if (tiles == 1) return launch_short<decltype(steps)::value, 1>(pass, weights, follows_pass, context);
        if (tiles == 2) return launch_short<decltype(steps)::value, 2>(pass, weights, follows_pass, context);
        return launch_short<decltype(steps)::value, 4>(pass, weights, follows_pass, context);
      };
      return pass.D == 32 ? with(std::integral_constant<int, 2>()) : with(std::integral_constant<int, 4>());
    }
    switch (shape.head_steps) {
      case 1:
        return launch_any<1>(pass, shape, weights, slots, context);
      case 2:
        return launch_any<2>(pass, shape, weights, slots, context);
      case 4:
        return launch_any<4>(pass, shape, weights, slots, context);
      default:
        return launch_any<8>(pass, shape, weights, slots, context);
    }
  }
};

std::optional<std::string> pass_declines(const AxialPass& pass) {
  constexpr Index most_channels = 256, most_of_head = 128, most_tokens = Index{1} << 24;
  if (pass.D > most_channels)
    return std::to_string(pass.D) + " channels; at most " + std::to_string(most_channels) + " are taken";
  if (pass.D / pass.heads > most_of_head)
    return "heads of " + std::to_string(pass.D / pass.heads) + " channels; at most " +
           std::to_string(most_of_head) + " are taken";
  if (pass.L > most_tokens)
    return std::to_string(pass.L) + " tokens; at most " + std::to_string(most_tokens) + " are taken";
  return too_much_workspace(SlotLayout(ceil_div(pass.L, 16), shape_of(pass)).total * 4);
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  if (auto reason =
          copy_declines(arguments.batches() * arguments.height() * arguments.width() * arguments.channels()))
    return reason;
  return passes_decline(arguments, pass_declines);
}

}  // namespace

bool reads_vectors(const AxialPass& pass) {
  const auto aligned = [](const void* data, const Index(&stride)[4]) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride[3] == 1 && stride[0] % 4 == 0 &&
           stride[1] % 4 == 0 && stride[2] % 4 == 0;
  };
  return pass.D % 4 == 0 && aligned(pass.x.data, pass.x.stride) && aligned(pass.y.data, pass.y.stride);
}

AxialKernel fused_pass_split_half() {
  return {"fused_pass_split_half",
          "a pass in one kernel on tensor cores: float32 operands split into two float16, columns in place",
          "online_softmax",
          declines,
          OnWorkspace<FusedPass>::run,
          true,
          OnWorkspace<FusedPass>::steps(),
          "sm_90"};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
