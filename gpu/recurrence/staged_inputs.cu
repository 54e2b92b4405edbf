// Differs from `warps_per_column`: the inputs of eight steps are brought to shared memory first, by all
// threads together, and serve eight columns. A warp again has one column, of any K: the lanes walk over the
// rows, 32 at a time, and the column lies in shared memory, where each lane touches its own rows only.
//
//     all threads:  q, k, v, gate, beta of steps t0 … t0+7 → shared memory
//     warp j, lane over i:  S[i] = gate_t · S[i] + (beta_t · k_t[i]) · v_t[j];  y_t[j] = Σ q_t[i] · S[i]
//
// Takes any V, and any K for which 2·8·K (q and k) and 8·K (the states) floats fit into shared memory.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int columns = 8;       // of a block, a warp each
constexpr int staged_steps = 8;  // enough loads in flight; more only take shared memory away
constexpr int threads = 32 * columns;

constexpr Index shared_floats(Index K) {
  return (2 * staged_steps + columns) * K + staged_steps * (columns + 2);
}

__device__ inline float warp_sum(float value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

__global__ void __launch_bounds__(threads) staged_inputs_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const Index K = views.K, V = views.V, tiles = ceil_div(V, columns);
  const simt::Shared<float> q = shared.slice(Index{0}, staged_steps * K);
  const simt::Shared<float> k = shared.slice(staged_steps * K, staged_steps * K);
  const simt::Shared<float> states = shared.slice(2 * staged_steps * K, columns * K);
  const Index rest = (2 * staged_steps + columns) * K;
  const simt::Shared<float> v = shared.slice(rest, Index{staged_steps * columns});
  const simt::Shared<float> gate = shared.slice(rest + staged_steps * columns, Index{staged_steps});
  const simt::Shared<float> beta = shared.slice(rest + staged_steps * (columns + 1), Index{staged_steps});

  const Index first_column = blockIdx.x % tiles * columns;
  const Index bh = blockIdx.x / tiles, h = bh % views.H, b = bh / views.H;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const Index j = first_column + warp;
  const bool has_column = j < V;  // the same for all lanes of the warp
  const simt::Shared<float> state = states.slice(warp * K, K);

  if (has_column)
    for (Index i = lane; i < K; i += 32) state[i] = load_initial_state(tensors, views, b, h, i, j);
  for (Index t0 = 0; t0 < views.T; t0 += staged_steps) {
    const Index steps = views.T - t0 < staged_steps ? views.T - t0 : staged_steps;
    __syncthreads();  // every warp has read the steps before, which are now overwritten
    for (Index at = threadIdx.x; at < steps * K; at += threads) {
      const Index t = t0 + at / K, i = at % K;
      q[at] = tensors.q[views.q.at(b, t, h, i)];
      k[at] = tensors.k[views.k.at(b, t, h, i)];
    }
    for (Index at = threadIdx.x; at < steps * columns; at += threads) {
      const Index t = t0 + at / columns, column = first_column + at % columns;
      if (column < V) v[at] = tensors.v[views.v.at(b, t, h, column)];
    }
    for (Index at = threadIdx.x; at < steps; at += threads) {
      gate[at] = tensors.gate[views.gate.at(b, t0 + at, h)];
      beta[at] = tensors.beta[views.beta.at(b, t0 + at, h)];
    }
    __syncthreads();  // the inputs of these steps are there
    if (!has_column) continue;
    for (Index step = 0; step < steps; ++step) {
      const float g = gate[step];
      const float write = beta[step];
      const float vj = v[step * columns + warp];
      float sum = 0;
      for (Index i = lane; i < K; i += 32) {
        const float ki = k[step * K + i];
        const float qi = q[step * K + i];
        float s = state[i];
        s = fmaf(g, s, (write * ki) * vj);
        state[i] = s;
        sum = fmaf(qi, s, sum);
      }
      const float y = warp_sum(sum);
      if (lane == 0) tensors.y[views.y.at(b, t0 + step, h, j)] = y;
    }
  }
  if (has_column)
    for (Index i = lane; i < K; i += 32) tensors.final_state[views.final_state.at(b, h, i, j)] = state[i];
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (auto reason = too_much_shared(shared_floats(arguments.key_size()))) return reason;
  return too_many_blocks(arguments.batches() * arguments.heads() * ceil_div(arguments.value_size(), columns));
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  launch(GAUGEBLOCK_KERNEL(staged_inputs_kernel), grid_of(views.B * views.H * ceil_div(views.V, columns)),
         dim3(threads), floats_bytes(shared_floats(views.K)), context, views);
}

}  // namespace

RecurrenceKernel staged_inputs() {
  return {"staged_inputs", "the inputs of eight steps come to shared memory first and serve eight columns",
          "sequential",    0,
          declines,        run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
