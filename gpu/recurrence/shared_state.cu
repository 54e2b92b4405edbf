// Differs from `thread_per_column`: a block keeps the whole state [K,V] of a (b,h) in shared memory, so k, v
// and q are read once for all columns, and any thread may work on any element.
//
//     all threads, over (i,j):  S[i][j] = gate_t · S[i][j] + (beta_t · k_t[i]) · v_t[j]
//     all threads, over j:      y_t[j] = Σ_i q_t[i] · S[i][j]
//
// Takes any K and V with K·V floats of shared memory. Two barriers a step. Neighbouring threads take
// neighbouring j, in different banks.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void shared_state_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  GAUGEBLOCK_DYNAMIC_SHARED(float, state);
  const Index h = blockIdx.x % views.H, b = blockIdx.x / views.H;
  const Index K = views.K, V = views.V;

  for (Index at = threadIdx.x; at < K * V; at += blockDim.x)
    state[at] = load_initial_state(tensors, views, b, h, at / V, at % V);
  // No barrier: every thread updates the elements it has just written.
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    for (Index at = threadIdx.x; at < K * V; at += blockDim.x) {
      const float k = tensors.k[views.k.at(b, t, h, at / V)];
      const float v = tensors.v[views.v.at(b, t, h, at % V)];
      const float before = state[at];
      state[at] = fmaf(gate, before, (beta * k) * v);
    }
    __syncthreads();  // the whole state is updated before a column is read
    for (Index j = threadIdx.x; j < V; j += blockDim.x) {
      float sum = 0;
      for (Index i = 0; i < K; ++i) {
        const float q = tensors.q[views.q.at(b, t, h, i)];
        const float s = state[i * V + j];
        sum = fmaf(q, s, sum);
      }
      tensors.y[views.y.at(b, t, h, j)] = sum;
    }
    __syncthreads();  // every column is read before the next step updates it
  }
  for (Index at = threadIdx.x; at < K * V; at += blockDim.x) {
    const float s = state[at];
    tensors.final_state[views.final_state.at(b, h, at / V, at % V)] = s;
  }
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (auto reason = too_much_shared(arguments.key_size() * arguments.value_size())) return reason;
  return too_many_blocks(arguments.batches() * arguments.heads());
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  // Whole warps, enough for four elements each, at most 256: more would only wait at the barriers.
  const Index wanted = ceil_div(ceil_div(views.K * views.V, 4), 32) * 32;
  const auto threads = static_cast<unsigned>(wanted < 256 ? wanted : 256);
  launch(GAUGEBLOCK_KERNEL(shared_state_kernel), grid_of(views.B * views.H), dim3(threads),
         floats_bytes(views.K * views.V), context, views);
}

}  // namespace

RecurrenceKernel shared_state() {
  return {"shared_state", "a block keeps the whole state of a (b,h) in shared memory, two barriers a step",
          "sequential",   0,
          declines,       run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
