// Scales, splits and packs the parameters of a pass for kernels with split float16 operands: see
// split_half.h.
#include "gaugeblock/gpu/axial/split_half.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace split_half {
namespace {

constexpr int threads = 256;

/// Exponents are kept where a power of two is a normal float32 number, with room for a product of two.
constexpr int largest_exponent = 120;
/// Of a bound that is zero: nothing needs a scale.
constexpr int no_exponent = -100000;

__device__ int clamped(int exponent) {
  return max(-largest_exponent, min(largest_exponent, exponent));
}

/// e with value < 2^e, for value > 0. What is not finite keeps its scale, and stays what it is.
__device__ int exponent_of(double value) {
  if (!(value > 0)) return no_exponent;
  if (!(value < 1e300)) return 0;
  return ilogb(value) + 1;
}

/// Scale exponent of channel k of n: N_k·2^t lies in (2^13, 2^14].
__device__ int norm_exponent(const AxialPass& pass, Index k) {
  const double bound = sqrt(static_cast<double>(pass.D)) *
                           fabs(static_cast<double>(pass.norm_weight.data[pass.norm_weight.at(k)])) +
                       fabs(static_cast<double>(pass.norm_bias.data[pass.norm_bias.at(k)]));
  const int e = exponent_of(bound);
  return e == no_exponent ? 0 : clamped(14 - e);
}

/// What is known of a row of a weight: its sum of |entries| times bounds is below 2^sum, its largest entry
/// (scaled by its column) below 2^largest.
struct RowBound {
  int sum, largest;
};

/// A scale that keeps the sum within 2^limit and every entry below 2^15.
__device__ int row_exponent(const RowBound& bound, int limit) {
  if (bound.sum == no_exponent) return 0;
  return clamped(min(limit - bound.sum, 15 - bound.largest));
}

struct Scratch {
  RowBound* qkv;      // [3D]
  int* qkv_exponent;  // [3D]
  int* out_exponent;  // [D]
};

struct Destination {
  uint4* packed;
  float *norm_weight, *norm_bias, *out_scale, *out_bias, *logit_scale, *q_scale, *k_scale, *rest_scale;
};

__device__ double warp_sum(double v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffU, v, offset);
  return v;
}
__device__ int warp_max(int v) {
  for (int offset = 16; offset > 0; offset /= 2) v = max(v, __shfl_xor_sync(0xffffffffU, v, offset));
  return v;
}

/// A warp per row of W_qkv: Σ_k |W_ck| N_k.
__global__ void __launch_bounds__(threads) bound_rows_kernel(AxialPass pass, Scratch scratch) {
  const Index row = static_cast<Index>(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
  if (row >= 3 * pass.D) return;
  double sum = 0;
  int largest = no_exponent;
  for (Index k = threadIdx.x % 32; k < pass.D; k += 32) {
    const double w = fabs(static_cast<double>(pass.qkv_weight.data[pass.qkv_weight.at(row, k)]));
    const int t = norm_exponent(pass, k);
    sum += scalbn(w, 14 - t);
    const int e = exponent_of(w);
    if (e != no_exponent) largest = max(largest, e - t);
  }
  sum = warp_sum(sum);
  largest = warp_max(largest);
  if (threadIdx.x % 32 == 0) scratch.qkv[row] = {exponent_of(sum), largest};
}

/// A warp per head, then one per row of W_out: exponents, and all that is not packed.
__global__ void __launch_bounds__(threads)
    choose_exponents_kernel(AxialPass pass, Shape shape, Scratch scratch, Destination to) {
  const Index item = static_cast<Index>(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Index D = pass.D;
  if (item < shape.heads) {
    const Index first = item * shape.d;
    int top = no_exponent;  // of the products |q_c||k_c|
    for (int c = lane; c < shape.d; c += 32) {
      const RowBound q = scratch.qkv[first + c], k = scratch.qkv[D + first + c];
      if (q.sum != no_exponent && k.sum != no_exponent) top = max(top, q.sum + k.sum);
    }
    top = warp_max(top);
    // q_c and k_c share what is left of their product, so that both stay small where it is small. Where an
    // entry or an exponent would leave its range, the whole head is scaled less.
    const int together = top == no_exponent ? 0 : 56 - top;
    int excess = 0;
    const auto wanted = [&](int c, int& q_exponent, int& k_exponent) {
      const RowBound q = scratch.qkv[first + c], k = scratch.qkv[D + first + c];
      const bool both = q.sum != no_exponent && k.sum != no_exponent;
      q_exponent = both ? 28 - (top - q.sum - k.sum) / 2 - q.sum : 0;
      k_exponent = both ? together - q_exponent : 0;
      if (!both) {  // the product is zero: either factor keeps within its own range
        q_exponent = row_exponent(q, 28);
        k_exponent = row_exponent(k, 28);
      }
      return both;
    };
    for (int c = lane; c < shape.d; c += 32) {
      int q_exponent, k_exponent;
      if (!wanted(c, q_exponent, k_exponent)) continue;
      const RowBound q = scratch.qkv[first + c], k = scratch.qkv[D + first + c];
      const int q_most = min(15 - q.largest, largest_exponent),
                k_most = min(15 - k.largest, largest_exponent);
      excess = max(excess, max(q_exponent - q_most, k_exponent - k_most));
    }
    excess = warp_max(excess);
    for (int c = lane; c < shape.d; c += 32) {
      int q_exponent, k_exponent;
      const int less = wanted(c, q_exponent, k_exponent) ? excess : 0;
      scratch.qkv_exponent[first + c] = q_exponent - less;
      scratch.qkv_exponent[D + first + c] = k_exponent - less;
      scratch.qkv_exponent[2 * D + first + c] = row_exponent(scratch.qkv[2 * D + first + c], 28);
    }
    if (lane == 0) {
      // q and k are scaled by 2^(together - 2·excess), and by 2^-14 each on their way into the product.
      const double back = top == no_exponent ? 0 : 2 * excess - together + 28;
      const auto scale = static_cast<float>(1.4426950408889634 / sqrt(static_cast<double>(shape.d)) *
                                            exp2(fmax(fmin(back, 120.0), -120.0)));
      to.logit_scale[item] = scale;
      const int half = min(ilogbf(scale), 0) >> 1;  // rounded down
      to.k_scale[item] = scalbnf(to_operand, half);
      to.q_scale[item] = scale > 1 ? to_operand : scalbnf(scale, -half) * to_operand;
      to.rest_scale[item] = scale > 1 ? scale : 1;
    }
    return;
  }
  const Index j = item - shape.heads;
  if (j >= shape.columns()) return;
  double sum = 0;
  int largest = no_exponent;
  if (j < D)
    for (Index c = lane; c < D; c += 32) {
      const double w = fabs(static_cast<double>(pass.out_weight.data[pass.out_weight.at(j, c)]));
      const int v = row_exponent(scratch.qkv[2 * D + c], 28) - 14;  // scale of v_c, at most 2^14 then
      sum += scalbn(w, 14 - v);
      const int e = exponent_of(w);
      if (e != no_exponent) largest = max(largest, e - v);
    }
  sum = warp_sum(sum);
  largest = warp_max(largest);
  if (lane != 0) return;
  const int exponent = row_exponent({exponent_of(sum), largest}, 28);
  if (j < D) scratch.out_exponent[j] = exponent;
  const int t = j < D ? norm_exponent(pass, j) : 0;
  to.norm_weight[j] = j < D ? scalbnf(pass.norm_weight.data[pass.norm_weight.at(j)], t) : 0;
  to.norm_bias[j] = j < D ? scalbnf(pass.norm_bias.data[pass.norm_bias.at(j)], t) : 0;
  to.out_scale[j] = j < D ? scalbnf(1.0F, -exponent) : 0;
  to.out_bias[j] = j < D ? pass.out_bias.data[pass.out_bias.at(j)] : 0;
}

/// Two neighbouring entries, scaled: their high or their low halves.
__device__ std::uint32_t pair(float a, float b, bool low) {
  std::uint32_t hi, lo;
  split(a, b, hi, lo);
  return low ? lo : hi;
}

/// A thread per 16-byte word of the packed weights.
__global__ void __launch_bounds__(threads)
    pack_kernel(AxialPass pass, Shape shape, Scratch scratch, Destination to) {
  const Index at = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (at >= static_cast<Index>(shape.heads) * shape.head_words()) return;
  const int head = static_cast<int>(at / shape.head_words());
  int word = static_cast<int>(at % shape.head_words());
  const int tiles = 2 * shape.head_steps;  // of 8 channels
  const Index D = pass.D;

  // W_q, W_k, W_v: channel of the head, column k.
  const auto qkv = [&](int part, int channel, int k) {
    if (channel >= shape.d || k >= D) return 0.0F;
    const Index row = part * D + static_cast<Index>(head) * shape.d + channel;
    const float w = pass.qkv_weight.data[pass.qkv_weight.at(row, k)];
    // Where n_k is zero, so is its product, whatever the size of w.
    const float scaled = scalbnf(w, scratch.qkv_exponent[row] - norm_exponent(pass, k));
    return fabsf(scaled) < 0x1p16F || !isfinite(w) ? scaled : 0.0F;
  };
  // W_out: column of y, channel of the head.
  const auto out = [&](int column, int channel) {
    if (column >= D || channel >= shape.d) return 0.0F;
    const Index c = static_cast<Index>(head) * shape.d + channel;
    const float w = pass.out_weight.data[pass.out_weight.at(column, c)];
    const int v = row_exponent(scratch.qkv[2 * D + c], 28) - 14;
    const float scaled = scalbnf(w, scratch.out_exponent[column] - v);
    return fabsf(scaled) < 0x1p16F || !isfinite(w) ? scaled : 0.0F;
  };
  // A lane holds columns 4t … 4t+3 of a token: they stand where the fragment has 2t, 2t+1, 2t+8, 2t+9.
  const auto column_of = [](int tile, int n) {
    return 16 * (tile / 2) + 4 * (n / 2) + n % 2 + 2 * (tile % 2);
  };
  const auto step_of = [](int k) { return k < 8 ? 4 * (k / 2) + k % 2 : 4 * ((k - 8) / 2) + 2 + k % 2; };

  uint4 value;
  const bool is_qkv = word < shape.qkv_words();
  if (!is_qkv) word -= shape.qkv_words();
  if (shape.packing == Packing::core_matrices) {
    // [step][hi, lo][part][2·head_steps][k core][8 rows], then [head step][hi, lo][columns/8][k core][8 rows]
    const int row = word % 8, core = word / 8 % 2, rest = word / 16;
    std::uint32_t pairs[4];
    if (is_qkv) {
      const int tile = rest % tiles, part = rest / tiles % 3, low = rest / tiles / 3 % 2,
                step = rest / tiles / 6;
      for (int i = 0; i < 4; ++i) {
        const int k = 16 * step + step_of(8 * core + 2 * i);
        pairs[i] = pair(qkv(part, 8 * tile + row, k), qkv(part, 8 * tile + row, k + 1), low);
      }
    } else {
      const int tile = rest % (2 * shape.steps), low = rest / (2 * shape.steps) % 2,
                step = rest / (4 * shape.steps);
      for (int i = 0; i < 4; ++i) {
        const int channel = 16 * step + 8 * core + 2 * i, column = column_of(tile, row);
        pairs[i] = pair(out(column, channel), out(column, channel + 1), low);
      }
    }
    value = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  } else {
    const int lane = word % 32, rest = word / 32, g = lane / 4, t = lane % 4;
    float a[4];
    if (is_qkv) {
      const int tile = rest % tiles, part = rest / tiles % 3, step = rest / tiles / 3, k = 16 * step + 4 * t;
      if (part == 2 && shape.packing == Packing::values_transposed) {
        // Tiles 2i and 2i+1: hi and lo of channels 16i + g and 16i + g + 8.
        const int c = 16 * (tile / 2) + g;
        const bool low = tile % 2 == 1;
        value = make_uint4(pair(qkv(2, c, k), qkv(2, c, k + 1), low),
                           pair(qkv(2, c + 8, k), qkv(2, c + 8, k + 1), low),
                           pair(qkv(2, c, k + 2), qkv(2, c, k + 3), low),
                           pair(qkv(2, c + 8, k + 2), qkv(2, c + 8, k + 3), low));
        to.packed[at] = value;
        return;
      }
      for (int i = 0; i < 4; ++i) a[i] = qkv(part, 8 * tile + g, k + i);
    } else {
      const int tile = rest % (2 * shape.steps), step = rest / (2 * shape.steps), c = 16 * step + 2 * t;
      const int column = column_of(tile, g);
      for (int i = 0; i < 4; ++i) a[i] = out(column, c + i % 2 + 8 * (i / 2));
    }
    split(a[0], a[1], value.x, value.z);
    split(a[2], a[3], value.y, value.w);
  }
  to.packed[at] = value;
}

constexpr std::size_t alignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct Layout {
  std::size_t packed, vectors, logit_scale, bounds, exponents, total;

  explicit Layout(const Shape& shape) {
    const auto D = static_cast<std::size_t>(shape.D);
    packed = 0;
    vectors = aligned(packed + sizeof(uint4) * static_cast<std::size_t>(shape.heads) *
                                   static_cast<std::size_t>(shape.head_words()));
    logit_scale = vectors + 4 * sizeof(float) * static_cast<std::size_t>(shape.columns());
    bounds = aligned(logit_scale + 4 * sizeof(float) * static_cast<std::size_t>(shape.heads));
    exponents = aligned(bounds + sizeof(RowBound) * 3 * D);
    total = aligned(exponents + sizeof(int) * 4 * D);
  }
};

Destination destination_in(void* memory, const Shape& shape) {
  const Layout layout(shape);
  auto* bytes = static_cast<char*>(memory);
  const auto floats = [&](std::size_t at, int vector) {
    return reinterpret_cast<float*>(bytes + at) + vector * shape.columns();
  };
  float* const of_heads = floats(layout.logit_scale, 0);
  return {reinterpret_cast<uint4*>(bytes + layout.packed),
          floats(layout.vectors, 0),
          floats(layout.vectors, 1),
          floats(layout.vectors, 2),
          floats(layout.vectors, 3),
          of_heads,
          of_heads + shape.heads,
          of_heads + 2 * shape.heads,
          of_heads + 3 * shape.heads};
}

}  // namespace

std::size_t weights_bytes(const Shape& shape) {
  return Layout(shape).total;
}

Weights weights_in(void* memory, const Shape& shape) {
  const Destination to = destination_in(memory, shape);
  return {to.packed,      to.norm_weight, to.norm_bias, to.out_scale, to.out_bias,
          to.logit_scale, to.q_scale,     to.k_scale,   to.rest_scale};
}

void launch_prepare(const AxialPass& pass, const Shape& shape, void* memory, LaunchContext& context) {
  const Layout layout(shape);
  const Destination to = destination_in(memory, shape);
  auto* bytes = static_cast<char*>(memory);
  Scratch scratch{};
  scratch.qkv = reinterpret_cast<RowBound*>(bytes + layout.bounds);
  scratch.qkv_exponent = reinterpret_cast<int*>(bytes + layout.exponents);
  scratch.out_exponent = scratch.qkv_exponent + 3 * pass.D;
  const Index warps = threads / 32;
  launch(GAUGEBLOCK_KERNEL(bound_rows_kernel), grid_of(ceil_div(3 * pass.D, warps)), dim3(threads), 0,
         context, pass, scratch);
  launch(GAUGEBLOCK_KERNEL(choose_exponents_kernel), grid_of(ceil_div(shape.heads + shape.columns(), warps)),
         dim3(threads), 0, context, pass, shape, scratch, to);
  launch(GAUGEBLOCK_KERNEL(pack_kernel),
         grid_of(ceil_div(static_cast<Index>(shape.heads) * shape.head_words(), threads)), dim3(threads), 0,
         context, pass, shape, scratch, to);
}

}  // namespace split_half
}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
