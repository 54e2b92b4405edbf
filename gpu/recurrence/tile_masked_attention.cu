// Differs from `chunked`: one launch and nothing sequential over T. A block owns a tile of 8 outputs of one
// (b,h) and looks back over all steps before them, 128 at a time; rows of the final state are tiles as well.
//
//     output t:      y_t = Σ_{s≤t} (Π_{s<r≤t} gate_r · beta_s · (q_t·k_s)) v_s + (Π_{r≤t} gate_r) q_tᵀ S_0
//     row of state:  S_i = Σ_s (Π_{r>s} gate_r · beta_s · k_s[i]) v_s + (Π gate) S_0[i]
//
//     a thread per step s (two, for half the tile's outputs each):  the decay from s to the tile, by a scan
//     of the gates; then the weight of v_s in each output of the tile, into shared memory
//     warp w, steps s = w, w+8, …:  weight · v_s summed in registers, the warps' sums added in the end
//
// For short sequences: T <= 1024, since the work grows with T². Takes K and V up to 128.
//
// What bounds it (B=2, T=128, H=4, K=V=24: 152 blocks at once, 4.4 µs on an H200): latency, not a rate. It
// moves 0.4 MB. A block waits for its loads once, then does a scan of 5 shuffles, 24 dependent multiply-adds
// a weight, 16 steps a warp, and three barriers. What helped: long tiles first (5.3 → 4.6 µs), code of its
// own for T <= 128, no division by V. What did not: parameters touched ahead (a launch reads 64 bytes of them
// in 25 ns), four threads a step with half the outputs each (4.7 µs). A further gain would have to shorten
// that chain.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int rows = 8;    // outputs of a tile
constexpr int keys = 128;  // steps looked at together
constexpr int threads = 2 * keys;
constexpr int warps = threads / 32;
constexpr Index most_steps = 1024;
constexpr Index most_columns = 128;

/// Where things lie in shared memory, in floats. Rows of q, k and v are padded to `Quads` times four.
template <int Quads>
struct Place {
  static constexpr int pitch = 4 * Quads + 4;  // rows four banks apart: eight threads read 16 bytes at once
  static constexpr int k = 0;
  static constexpr int v = k + keys * pitch;
  static constexpr int q = v + keys * pitch;
  static constexpr int weight = q + rows * 4 * Quads;
  static constexpr int sums = weight + keys * rows;
  static constexpr int gate = sums + warps * rows * 4 * Quads;  // of the tile's own steps
  static constexpr int warp_product = gate + rows;
  static constexpr int floats = warp_product + keys / 32;
};

/// Columns column … column+3 of row `row` of q, k or v; zeros beyond the row's end.
template <bool Vector>
__device__ inline float4 load_quad(const simt::Global<const float>& from, const View4<const float>& view,
                                   Index row, int column, int width) {
  float4 four = make_float4(0, 0, 0, 0);
  if constexpr (Vector) {
    if (column < width) four = simt::load_vector<float4>(from, row + column);
    return four;
  }
  const Index stride = view.stride[3];
  if (column < width) four.x = from[row + column * stride];
  if (column + 1 < width) four.y = from[row + (column + 1) * stride];
  if (column + 2 < width) four.z = from[row + (column + 2) * stride];
  if (column + 3 < width) four.w = from[row + (column + 3) * stride];
  return four;
}

__device__ inline void add_scaled(float4& sum, float weight, const float4& four) {
  sum.x = fmaf(weight, four.x, sum.x);
  sum.y = fmaf(weight, four.y, sum.y);
  sum.z = fmaf(weight, four.z, sum.z);
  sum.w = fmaf(weight, four.w, sum.w);
}

/// Block: (b,h), tile. Vector: whether every row of q, k and v can be loaded in fours. OneRound: T <= keys.
template <int Quads, bool Vector, bool OneRound>
__global__ void __launch_bounds__(threads) tile_masked_attention_kernel(RecurrenceViews views) {
  using At = Place<Quads>;
  const Tensors tensors(views);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const simt::Shared<float> k = shared.slice(At::k, keys * At::pitch);
  const simt::Shared<float> v = shared.slice(At::v, keys * At::pitch);
  const simt::Shared<float> q = shared.slice(At::q, rows * 4 * Quads);
  const simt::Shared<float> weight = shared.slice(At::weight, keys * rows);
  const simt::Shared<float> sums = shared.slice(At::sums, warps * rows * 4 * Quads);
  const simt::Shared<float> tile_gate = shared.slice(At::gate, rows);
  const simt::Shared<float> warp_product = shared.slice(At::warp_product, keys / 32);

  const int K = static_cast<int>(views.K), V = static_cast<int>(views.V), T = static_cast<int>(views.T);
  const int tid = static_cast<int>(threadIdx.x), warp = tid / 32, lane = tid % 32;
  const int output_tiles = (T + rows - 1) / rows;
  // Tiles of the state and late ones first: they look at the most steps, and where there are more blocks than
  // multiprocessors, those that share one with another should be the short ones.
  const int tile = static_cast<int>(gridDim.y - 1 - blockIdx.y), bh = static_cast<int>(blockIdx.x);
  const int heads = static_cast<int>(views.H);  // at most the number of blocks; 64-bit division is slow
  const Index h = bh % heads, b = bh / heads;
  const bool is_state = tile >= output_tiles;
  const int first_row =
      is_state ? (tile - output_tiles) * rows : tile * rows;  // a row of the state, or a step
  const int t0 = is_state ? T : first_row;                    // gates before t0 are in the scans
  const int end = t0 + rows < T ? t0 + rows : T;              // steps before it are looked at
  const int s_local = tid % keys, half = tid / keys;
  const int first_output = half * (rows / 2);  // of this thread's weights

  // Loads come before everything that waits for one: their latency is most of this kernel's time.
  const bool has_query = !is_state && tid < rows * Quads && t0 + tid / Quads < T;
  float4 query = make_float4(0, 0, 0, 0);
  if (has_query)
    query = load_quad<Vector>(tensors.q, views.q, views.q.at(b, t0 + tid / Quads, h, 0), tid % Quads * 4, K);

  constexpr int items = (rows / 2 * Quads + 31) / 32;  // pairs of outputs × quads of columns, of a lane
  float4 sum[items][2];
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < items; ++i) sum[i][0] = sum[i][1] = make_float4(0, 0, 0, 0);
  float beyond = 1;  // Π gate over the steps before t0 that are behind this round's

  for (int first = OneRound ? 0 : (end - 1) / keys * keys; first >= 0 && end > 0; first -= keys) {
    const int count = end - first < keys ? end - first : keys;
    const int s = first + s_local;
    float gate = 1, beta = 0;
    if (s < end) {
      gate = tensors.gate[views.gate.at(b, s, h)];
      beta = tensors.beta[views.beta.at(b, s, h)];
    }
    constexpr int pieces = keys * Quads / threads, together = pieces < 4 ? pieces : 4;
    const Index k_first = views.k.at(b, first, h, 0), v_first = views.v.at(b, first, h, 0);
    for (int group = 0; group < pieces; group += together) {
      float4 some_k[together], some_v[together];
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < together; ++i) {
        const int at = tid + (group + i) * threads, row = at / Quads, column = at % Quads * 4;
        if (row >= count) continue;
        some_k[i] = load_quad<Vector>(tensors.k, views.k, k_first + row * views.k.stride[1], column, K);
        some_v[i] = load_quad<Vector>(tensors.v, views.v, v_first + row * views.v.stride[1], column, V);
      }
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < together; ++i) {
        const int at = tid + (group + i) * threads, row = at / Quads, column = at % Quads * 4;
        if (row >= count) continue;
        simt::store_vector(k, row * At::pitch + column, some_k[i]);
        simt::store_vector(v, row * At::pitch + column, some_v[i]);
      }
    }
    if (first + keys >= end) {  // the first round
      if (!is_state && tid < rows * Quads) simt::store_vector(q, tid * 4, query);
      if (half == 0 && s >= t0 && s < end) tile_gate[s - t0] = gate;
      if (tid < rows && t0 + tid >= end) tile_gate[tid] = 1;
    }
    float including = s < t0 ? gate : 1.0F;  // Π gate from s to the end of the warp's steps
    GAUGEBLOCK_UNROLL
    for (int offset = 1; offset < 32; offset *= 2) {
      const float other = __shfl_down_sync(0xffffffffU, including, offset);
      if (lane + offset < 32) including *= other;
    }
    float decay = __shfl_down_sync(0xffffffffU, including, 1);  // Π gate from s+1 on
    if (lane == 31) decay = 1;
    if (half == 0 && lane == 0) warp_product[warp] = including;
    __syncthreads();  // this round's k, v and products (in the first also q and the gates) are there

    GAUGEBLOCK_UNROLL
    for (int w = 0; w < keys / 32; ++w)
      if (w > s_local / 32) decay *= warp_product[w];
    decay *= beyond;
    GAUGEBLOCK_UNROLL
    for (int w = 0; w < keys / 32; ++w) beyond *= warp_product[w];
    if (s_local < count) {
      float score[rows / 2];
      if (is_state) {
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < rows / 2; ++i) {
          const int row = first_row + first_output + i;
          score[i] = 0;
          if (row < K) score[i] = k[s_local * At::pitch + row];
        }
      } else {
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < rows / 2; ++i) score[i] = 0;
        GAUGEBLOCK_UNROLL
        for (int x = 0; x < Quads; ++x) {
          const float4 key = simt::load_vector<float4>(k, s_local * At::pitch + 4 * x);
          GAUGEBLOCK_UNROLL
          for (int i = 0; i < rows / 2; ++i) {
            const float4 of_q = simt::load_vector<float4>(q, (first_output + i) * 4 * Quads + 4 * x);
            score[i] = fmaf(of_q.x, key.x, score[i]);
            score[i] = fmaf(of_q.y, key.y, score[i]);
            score[i] = fmaf(of_q.z, key.z, score[i]);
            score[i] = fmaf(of_q.w, key.w, score[i]);
          }
        }
      }
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < rows / 2; ++i)
        if (half == 1 && t0 + i > s) decay *= tile_gate[i];
      float weights[rows / 2];
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < rows / 2; ++i) {
        const int t = t0 + first_output + i;
        if (t > s) decay *= tile_gate[first_output + i];
        weights[i] = t >= s ? (score[i] * decay) * beta : 0.0F;
      }
      simt::store_vector(weight, s_local * rows + first_output,
                         make_float4(weights[0], weights[1], weights[2], weights[3]));
    }
    __syncthreads();  // the weights are there
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < items; ++i) {
      const int item = lane + 32 * i, pair = item / Quads * 2, column = item % Quads * 4;
      if (pair >= rows) continue;
      GAUGEBLOCK_UNROLL
      for (int n = 0; n < keys / warps; ++n) {
        const int at = n * warps + warp;  // interleaved: every warp has steps, whatever their count
        if (at >= count) continue;
        const float4 four = simt::load_vector<float4>(v, at * At::pitch + column);
        const float2 both = simt::load_vector<float2>(weight, at * rows + pair);
        // Not by a weight of 0: a later v may be infinite or NaN.
        if (first + at <= t0 + pair) add_scaled(sum[i][0], both.x, four);
        if (first + at <= t0 + pair + 1) add_scaled(sum[i][1], both.y, four);
      }
    }
    if (first > 0) __syncthreads();  // all have read this round's k, v and weights
  }

  GAUGEBLOCK_UNROLL
  for (int i = 0; i < items; ++i) {
    const int item = lane + 32 * i, pair = item / Quads * 2, column = item % Quads * 4;
    if (pair >= rows) continue;
    simt::store_vector(sums, (warp * rows + pair) * 4 * Quads + column, sum[i][0]);
    simt::store_vector(sums, (warp * rows + pair + 1) * 4 * Quads + column, sum[i][1]);
  }
  __syncthreads();  // every warp's sums are there (and q and the gates, where no step was looked at)
  for (int at = tid; at < rows * 4 * Quads; at += threads) {
    const int row = at / (4 * Quads), j = at % (4 * Quads);
    if (j >= V) continue;
    float total = 0;
    GAUGEBLOCK_UNROLL
    for (int w = 0; w < warps; ++w) total += sums[(w * rows + row) * 4 * Quads + j];
    if (is_state) {
      if (first_row + row >= K) continue;
      if (views.initial_state.data != nullptr) {
        const float before = tensors.initial_state[views.initial_state.at(b, h, first_row + row, j)];
        total = T == 0 ? before : fmaf(beyond, before, total);
      }
      tensors.final_state[views.final_state.at(b, h, first_row + row, j)] = total;
    } else {
      if (t0 + row >= T) continue;
      if (views.initial_state.data != nullptr) {
        float decay = beyond, carried = 0;
        for (int r = 0; r <= row; ++r) decay *= tile_gate[r];
        for (int i = 0; i < K; ++i) {
          const float before = tensors.initial_state[views.initial_state.at(b, h, i, j)];
          carried = fmaf(q[row * 4 * Quads + i], before, carried);
        }
        total = fmaf(decay, carried, total);
      }
      tensors.y[views.y.at(b, t0 + row, h, j)] = total;
    }
  }
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (arguments.steps() > most_steps)
    return "T is " + std::to_string(arguments.steps()) + ", at most " + std::to_string(most_steps) +
           " steps are looked back over";
  if (arguments.key_size() > most_columns || arguments.value_size() > most_columns)
    return "K and V are " + std::to_string(arguments.key_size()) + " and " +
           std::to_string(arguments.value_size()) + ", at most " + std::to_string(most_columns) +
           " fit into a block's shared memory";
  return too_many_blocks(arguments.batches() * arguments.heads());
}

template <int Quads, bool Vector, bool OneRound>
void launch_with(dim3 grid, const RecurrenceViews& views, LaunchContext& context) {
  launch(GAUGEBLOCK_KERNEL(tile_masked_attention_kernel<Quads, Vector, OneRound>), grid, dim3(threads),
         floats_bytes(Place<Quads>::floats), context, views);
}

template <int Quads>
void launch_for(bool vector, dim3 grid, const RecurrenceViews& views, LaunchContext& context) {
  const bool one_round = views.T <= keys;
  if (vector && one_round) return launch_with<Quads, true, true>(grid, views, context);
  if (vector) return launch_with<Quads, true, false>(grid, views, context);
  if (one_round) return launch_with<Quads, false, true>(grid, views, context);
  launch_with<Quads, false, false>(grid, views, context);
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  const bool vector = rows_are_aligned(arguments.q, 4) && rows_are_aligned(arguments.k, 4) &&
                      rows_are_aligned(arguments.v, 4);
  const dim3 grid(static_cast<unsigned>(views.B * views.H),
                  static_cast<unsigned>(ceil_div(views.T, rows) + ceil_div(views.K, rows)));
  const Index widest = views.K > views.V ? views.K : views.V;
  if (widest <= 24) return launch_for<6>(vector, grid, views, context);
  if (widest <= 64) return launch_for<16>(vector, grid, views, context);
  launch_for<32>(vector, grid, views, context);
}

}  // namespace

RecurrenceKernel tile_masked_attention() {
  return {"tile_masked_attention",
          "one launch, nothing sequential over T: every tile of 8 outputs looks back over all steps",
          "masked_attention",
          0,
          declines,
          run,
          true};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
