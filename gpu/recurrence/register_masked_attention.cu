// Differs from `tile_masked_attention`: rows of k and v stay in the registers of the lanes that load them, and
// sums go from lane to lane. Shared memory has q and the decays alone, so the loads are waited for once.
//
//     output t:      y_t = Σ_{s≤t} (Π_{s<r≤t} gate_r · beta_s · (q_t·k_s)) v_s + (Π_{r≤t} gate_r) q_tᵀ S_0
//     row of state:  S_i = Σ_s (Π_{r>s} gate_r · beta_s · k_s[i]) v_s + (Π gate) S_0[i]
//
// A block owns 8 outputs of one (b,h), or 8 rows of its final state. Four lanes have a row of k and v, six
// columns each, so a warp has 8 steps at a time and a block 64:
//
//     weights  each lane's part of q_t·k_s for the 8 outputs, added over the row's four lanes so that each
//              keeps the weights of two outputs
//     sums     weight · v_s for 8 outputs and six columns, over a lane's steps; then over the 8 rows of the
//              warp, so that each lane keeps one output; then, through shared memory, over the warps
//
// Such a sum over lanes halves the outputs at each step: a lane keeps half of them, and adds its partner's
// parts of these. Nothing selects which: place j of a lane is output j ^ swap, and partners differ in the bit
// of `swap` that parts what is kept from what is given, so both keep the lower places.
//
// For the shortest sequences of narrow heads: T <= 128, K and V up to 24, offsets that fit 32 bits.
//
// What bounds it (B=2, T=128, H=4, K=V=24: 152 blocks at once, 3.2 µs on an H200, 4.0 of
// tile_masked_attention; 2.4 of 2.9 at T=16): latency. An empty kernel takes 0.6 to 0.9, the loads about one
// more, of which instructions before the last of them are a tenth. What helped: no score through shared
// memory (there it takes five floats for four multiply-adds, and a load of four costs as much where all lanes
// read the same), offsets of 32 bits, no division. Four warps with twice the steps each take as long at T=128
// and 0.3 µs more at T=16. A further gain would have to shorten the chain: launch, load, scan, weights, two
// sums over lanes.
#include <array>
#include <utility>

#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int rows = 8;  // outputs of a block; steps of a warp
constexpr int most_steps = 128;
constexpr int most_columns = 24;
constexpr int warps = 8;
constexpr int slots = most_steps / rows / warps;  // of a warp, 8 steps in each
constexpr Index most_across = 65535;              // blocks in a grid's second dimension

/// Pointer and strides of 32 bits: an offset costs as many instructions as it has indices.
template <class T>
struct ShortView {
  T* data;
  int stride[4];
  __device__ int at(int a, int b, int c) const { return a * stride[0] + b * stride[1] + c * stride[2]; }
};

/// What the first loads need comes first: a block reads its parameters 64 bytes at a time.
struct ShortViews {
  ShortView<const float> gate, beta;  // three strides
  int T, K, V;
  ShortView<const float> q, k, v;
  ShortView<const float> initial_state;
  ShortView<float> y, final_state;
};

/// A lane's columns of a row: 4c … 4c+3, and 16+2c and 17+2c.
struct Six {
  float4 four;
  float2 two;
};

__device__ inline Six no_columns() {
  return {make_float4(0, 0, 0, 0), make_float2(0, 0)};
}

/// Zeros beyond the row's end, or everywhere unless `there`. Vector: rows can be loaded in fours.
template <bool Vector>
__device__ inline float4 load_four(const simt::Global<const float>& from, int row, int column, int stride,
                                   int width, bool there) {
  float4 four = make_float4(0, 0, 0, 0);
  if constexpr (Vector) {
    if (there && column < width) four = simt::load_vector<float4>(from, row + column);
    return four;
  }
  const int at = row + column * stride;
  if (there && column < width) four.x = from[at];
  if (there && column + 1 < width) four.y = from[at + stride];
  if (there && column + 2 < width) four.z = from[at + 2 * stride];
  if (there && column + 3 < width) four.w = from[at + 3 * stride];
  return four;
}

template <bool Vector>
__device__ inline Six load_six(const simt::Global<const float>& from, int row, int c, int stride, int width,
                               bool there) {
  Six six{load_four<Vector>(from, row, 4 * c, stride, width, there), make_float2(0, 0)};
  const int column = 16 + 2 * c;
  if constexpr (Vector) {
    if (there && column < width) six.two = simt::load_vector<float2>(from, row + column);
    return six;
  }
  const int at = row + column * stride;
  if (there && column < width) six.two.x = from[at];
  if (there && column + 1 < width) six.two.y = from[at + stride];
  return six;
}

__device__ inline float dot(const Six& a, const Six& b) {
  float sum = a.four.x * b.four.x;
  sum = fmaf(a.four.y, b.four.y, sum);
  sum = fmaf(a.four.z, b.four.z, sum);
  sum = fmaf(a.four.w, b.four.w, sum);
  sum = fmaf(a.two.x, b.two.x, sum);
  return fmaf(a.two.y, b.two.y, sum);
}

__device__ inline void add_scaled(Six& sum, float weight, const Six& six) {
  sum.four.x = fmaf(weight, six.four.x, sum.four.x);
  sum.four.y = fmaf(weight, six.four.y, sum.four.y);
  sum.four.z = fmaf(weight, six.four.z, sum.four.z);
  sum.four.w = fmaf(weight, six.four.w, sum.four.w);
  sum.two.x = fmaf(weight, six.two.x, sum.two.x);
  sum.two.y = fmaf(weight, six.two.y, sum.two.y);
}

/// Adds what the lane `partner` away gives.
__device__ inline void add_given(float& kept, float given, int partner) {
  kept += __shfl_xor_sync(0xffffffffU, given, partner);
}
__device__ inline void add_given(Six& kept, const Six& given, int partner) {
  add_given(kept.four.x, given.four.x, partner);
  add_given(kept.four.y, given.four.y, partner);
  add_given(kept.four.z, given.four.z, partner);
  add_given(kept.four.w, given.four.w, partner);
  add_given(kept.two.x, given.two.x, partner);
  add_given(kept.two.y, given.two.y, partner);
}

/// Block: h, b, tile.
template <bool Vector>
__global__ void __launch_bounds__(32 * warps) register_masked_attention_kernel(ShortViews views) {
  const simt::Global<const float> all_gates(views.gate.data), all_betas(views.beta.data), all_q(views.q.data),
      all_k(views.k.data), all_v(views.v.data), initial_state(views.initial_state.data);
  const simt::Global<float> y(views.y.data), final_state(views.final_state.data);
  GAUGEBLOCK_STATIC_SHARED(float, q, rows* most_columns);
  GAUGEBLOCK_STATIC_SHARED(float, sums, warps* rows* most_columns);
  GAUGEBLOCK_STATIC_SHARED(float, step_factor, most_steps);  // beta_s · Π gate from s+1 to the end of its 32
  GAUGEBLOCK_STATIC_SHARED(float, product, most_steps / 32);  // Π gate of 32 steps
  GAUGEBLOCK_STATIC_SHARED(float, tile_decay, 16 * rows);     // [i][j]: Π gate t0+i … t0+j; 1 for j < i

  const int T = views.T, K = views.K, V = views.V;
  const int tid = static_cast<int>(threadIdx.x), warp = tid / 32, lane = tid % 32;
  const int h = static_cast<int>(blockIdx.x), b = static_cast<int>(blockIdx.y);
  // Tiles of the state and late ones first, as in tile_masked_attention.
  const int tile = static_cast<int>(gridDim.z - 1 - blockIdx.z), output_tiles = (T + rows - 1) / rows;
  const bool is_state = tile >= output_tiles;
  const int first_row = (is_state ? tile - output_tiles : tile) * rows;  // a row of the state, or a step
  const int t0 = is_state ? T : first_row;
  const int end = t0 + rows < T ? t0 + rows : T;  // steps before it are looked at

  // The last warp's last slot has the tile's own steps, the only ones that some of its outputs do not see.
  const int r = lane / 4, c = lane % 4;
  const bool own = warp == warps - 1 && !is_state;
  const int swap = c * 2 ^ (r & 1) * 2 ^ (r & 2) / 2 ^ (r & 4);
  int step[slots], before[slots];  // and the end of the steps that its slot may have
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < slots; ++i) {
    step[i] = (i * warps + warp) * rows + r;
    before[i] = t0;
  }
  if (own) {
    step[slots - 1] = t0 + r;
    before[slots - 1] = end;
  }

  // Loads come before everything that waits for one: their latency is most of this kernel's time.
  float gate = 1, beta = 0, tile_gate = 1;
  if (tid < t0) gate = all_gates[views.gate.at(b, tid, h)];
  if (tid < end) beta = all_betas[views.beta.at(b, tid, h)];
  if (tid % rows >= tid / rows && t0 + tid % rows < end)
    tile_gate = all_gates[views.gate.at(b, t0 + tid % rows, h)];
  const bool has_query = tid < 8 * rows && tid % 8 * 4 < most_columns;
  float4 query = make_float4(0, 0, 0, 0);
  if (has_query)
    query = load_four<Vector>(all_q, views.q.at(b, t0 + tid / 8, h), tid % 8 * 4, views.q.stride[3], K,
                              t0 + tid / 8 < end);
  Six k[slots], v[slots];
  float weight[slots][2];  // of places 0 and 1
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < slots; ++i) {
    weight[i][0] = weight[i][1] = 0;
    k[i] = no_columns();
    v[i] = load_six<Vector>(all_v, views.v.at(b, step[i], h), c, views.v.stride[3], V, step[i] < before[i]);
  }
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < slots; ++i) {
    const int row = views.k.at(b, step[i], h);
    if (is_state) {
      const int i0 = first_row + swap, i1 = first_row + (swap ^ 1);
      if (step[i] < before[i] && i0 < K) weight[i][0] = all_k[row + i0 * views.k.stride[3]];
      if (step[i] < before[i] && i1 < K) weight[i][1] = all_k[row + i1 * views.k.stride[3]];
    } else {
      k[i] = load_six<Vector>(all_k, row, c, views.k.stride[3], K, step[i] < before[i]);
    }
  }

  if (tid < most_steps) {
    float including = gate;  // Π gate from s to the end of the warp's 32 steps
    GAUGEBLOCK_UNROLL
    for (int offset = 1; offset < 32; offset *= 2) {
      const float other = __shfl_down_sync(0xffffffffU, including, offset);
      if (lane + offset < 32) including *= other;
    }
    float decay = __shfl_down_sync(0xffffffffU, including, 1);
    if (lane == 31) decay = 1;
    step_factor[tid] = decay * beta;
    if (lane == 0) product[warp] = including;
    GAUGEBLOCK_UNROLL
    for (int offset = 1; offset < rows; offset *= 2) {
      const float other = __shfl_up_sync(0xffffffffU, tile_gate, static_cast<unsigned>(offset), rows);
      if (lane % rows >= offset) tile_gate *= other;
    }
    tile_decay[tid] = tile_gate;
  }
  if (has_query) simt::store_vector(q, tid / 8 * most_columns + tid % 8 * 4, query);
  __syncthreads();  // q and the decays are there

  const float4 products = simt::load_vector<float4>(product, 0);
  Six sum[rows];
  GAUGEBLOCK_UNROLL
  for (int j = 0; j < rows; ++j) sum[j] = no_columns();
  if (own || warp * rows < t0) {  // the warp has steps
    if (!is_state) {
      Six queries[rows];
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < rows; ++j) {
        queries[j].four = simt::load_vector<float4>(q, (j ^ swap) * most_columns + 4 * c);
        queries[j].two = simt::load_vector<float2>(q, (j ^ swap) * most_columns + 16 + 2 * c);
      }
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < slots; ++i) {
        float score[rows];
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < rows; ++j) score[j] = dot(queries[j], k[i]);
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < 4; ++j) add_given(score[j], score[j + 4], 2);
        GAUGEBLOCK_UNROLL
        for (int j = 0; j < 2; ++j) add_given(score[j], score[j + 2], 1);
        weight[i][0] = score[0];
        weight[i][1] = score[1];
      }
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < slots; ++i) {
      const bool within = i + 1 == slots && own;
      const int first = within ? r + 1 : 0;  // of the tile's gates behind the step
      float factor = step_factor[step[i]];
      if (!within) {
        const int of_32 = (i * warps + warp) * rows / 32;
        if (of_32 < 1) factor *= products.y;
        if (of_32 < 2) factor *= products.z;
        if (of_32 < 3) factor *= products.w;
      }
      weight[i][0] *= factor * tile_decay[first * rows + swap];
      weight[i][1] *= factor * tile_decay[first * rows + (swap ^ 1)];
      // Of a step that is not there the score, beta or decay may be NaN.
      if (step[i] >= before[i]) weight[i][0] = weight[i][1] = 0;
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < slots; ++i) {
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < rows; ++j) {
        float w = weight[i][j % 2];
        if (j >= 2) w = __shfl_xor_sync(0xffffffffU, w, j / 2);
        // Not by a weight of 0: a later v may be infinite or NaN.
        if (i + 1 < slots || !own || (j ^ swap) >= r) add_scaled(sum[j], w, v[i]);
      }
    }
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 4; ++j) add_given(sum[j], sum[j + 4], 16);
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 2; ++j) add_given(sum[j], sum[j + 2], 4);
    add_given(sum[0], sum[1], 8);
  }
  simt::store_vector(sums, (warp * rows + swap) * most_columns + 4 * c, sum[0].four);
  simt::store_vector(sums, (warp * rows + swap) * most_columns + 16 + 2 * c, sum[0].two);
  __syncthreads();  // every warp's sums are there

  const int row = tid / 16, j = tid % 16 * 2;  // two columns of a row
  if (row >= rows || j >= V || first_row + row >= (is_state ? K : T)) return;
  float2 total = make_float2(0, 0);
  GAUGEBLOCK_UNROLL
  for (int w = 0; w < warps; ++w) {
    const float2 of_warp = simt::load_vector<float2>(sums, (w * rows + row) * most_columns + j);
    total.x += of_warp.x;
    total.y += of_warp.y;
  }
  const bool has_second = j + 1 < V;
  if (views.initial_state.data != nullptr) {
    const float beyond = products.x * products.y * products.z * products.w;  // Π gate of the steps before t0
    const ShortView<const float>& view = views.initial_state;
    float2 carried = make_float2(0, 0);
    if (is_state) {
      const int at = view.at(b, h, first_row + row) + j * view.stride[3];
      carried.x = initial_state[at];
      if (has_second) carried.y = initial_state[at + view.stride[3]];
    } else {
      GAUGEBLOCK_ROLLED
      for (int i = 0; i < K; ++i) {
        const int at = view.at(b, h, i) + j * view.stride[3];
        const float of_q = q[row * most_columns + i];
        carried.x = fmaf(of_q, initial_state[at], carried.x);
        if (has_second) carried.y = fmaf(of_q, initial_state[at + view.stride[3]], carried.y);
      }
    }
    // Before the first step nothing is added, not even a zero: it would change the sign of another.
    const float decay = is_state ? beyond : beyond * tile_decay[row];
    total.x = T == 0 ? carried.x : fmaf(decay, carried.x, total.x);
    total.y = T == 0 ? carried.y : fmaf(decay, carried.y, total.y);
  }
  const simt::Global<float> to = is_state ? final_state : y;
  const int stride = is_state ? views.final_state.stride[3] : views.y.stride[3];
  const int at =
      (is_state ? views.final_state.at(b, h, first_row + row) : views.y.at(b, first_row + row, h)) +
      j * stride;
  to[at] = total.x;
  if (has_second) to[at + stride] = total.y;
}

/// Whether offsets fit 32 bits, also of steps and rows that are computed and not used.
template <std::size_t Rank>
bool offsets_are_short(const std::array<Index, Rank>& shape, const std::array<Index, Rank>& stride) {
  constexpr Index most = 2147483647;
  Index reach = 0;
  for (std::size_t dimension = 0; dimension < Rank; ++dimension) {
    const Index indices = shape[dimension] + most_steps;
    const Index distance = stride[dimension] < 0 ? -stride[dimension] : stride[dimension];
    if (indices > most || distance > most / indices) return false;
    reach += indices * distance;
  }
  return reach <= most;
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (arguments.steps() > most_steps)
    return "T is " + std::to_string(arguments.steps()) + ", at most " + std::to_string(most_steps) +
           " steps are looked back over";
  if (arguments.key_size() > most_columns || arguments.value_size() > most_columns)
    return "K and V are " + std::to_string(arguments.key_size()) + " and " +
           std::to_string(arguments.value_size()) + ", at most " + std::to_string(most_columns) +
           " fit into registers";
  const auto is_short = [](const auto& view) { return offsets_are_short(view.shape, view.stride); };
  if (!is_short(arguments.q) || !is_short(arguments.k) || !is_short(arguments.v) ||
      !is_short(arguments.gate) || !is_short(arguments.beta) || !is_short(arguments.y) ||
      !is_short(arguments.final_state) || (arguments.initial_state && !is_short(*arguments.initial_state)))
    return "offsets of 32 bits do not reach all elements";
  return too_many_blocks(arguments.batches() * arguments.heads());
}

/// With `exchanged`, heads in place of batches and the other way round; heads are the dimension `heads`.
template <class T, int Rank>
ShortView<T> short_view_of(const TensorView<T, Rank>& view, int heads, bool exchanged) {
  ShortView<T> of{view.data, {}};
  for (int dimension = 0; dimension < Rank; ++dimension)
    of.stride[dimension] = static_cast<int>(view.stride[dimension]);
  if (exchanged) std::swap(of.stride[0], of.stride[heads]);
  return of;
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  // The kernel treats batches and heads alike, and one of the two is few enough.
  const bool exchanged = arguments.batches() > most_across;
  const Index across = exchanged ? arguments.heads() : arguments.batches();
  const auto of_steps = [exchanged](const auto& view) { return short_view_of(view, 2, exchanged); };
  const auto of_states = [exchanged](const auto& view) { return short_view_of(view, 1, exchanged); };
  ShortViews views{};
  views.gate = of_steps(arguments.gate);
  views.beta = of_steps(arguments.beta);
  views.T = static_cast<int>(arguments.steps());
  views.K = static_cast<int>(arguments.key_size());
  views.V = static_cast<int>(arguments.value_size());
  views.q = of_steps(arguments.q);
  views.k = of_steps(arguments.k);
  views.v = of_steps(arguments.v);
  if (arguments.initial_state) views.initial_state = of_states(*arguments.initial_state);
  views.y = of_steps(arguments.y);
  views.final_state = of_states(arguments.final_state);
  const dim3 grid(static_cast<unsigned>(arguments.batches() * arguments.heads() / across),
                  static_cast<unsigned>(across),
                  static_cast<unsigned>(ceil_div(views.T, rows) + ceil_div(views.K, rows)));
  const bool vector = rows_are_aligned(arguments.q, 4) && rows_are_aligned(arguments.k, 4) &&
                      rows_are_aligned(arguments.v, 4);
  if (vector)
    launch(GAUGEBLOCK_KERNEL(register_masked_attention_kernel<true>), grid, dim3(32 * warps), 0, context,
           views);
  else
    launch(GAUGEBLOCK_KERNEL(register_masked_attention_kernel<false>), grid, dim3(32 * warps), 0, context,
           views);
}

}  // namespace

RecurrenceKernel register_masked_attention() {
  return {"register_masked_attention",
          "for T <= 128 and K, V <= 24: k and v stay in registers, sums go from lane to lane",
          "masked_attention",
          0,
          declines,
          run,
          true};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
