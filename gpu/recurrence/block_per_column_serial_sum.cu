// The plainest kernel: a block per column (b,h,j) of the state, a thread per row i.
//
//     thread i:  S[i] = gate_t · S[i] + (beta_t · k_t[i]) · v_t[j];  product[i] = q_t[i] · S[i]
//     thread 0:  y_t[j] = product[0] + … + product[K-1]
//
// Takes K up to 1024, one thread each. Shared memory: K floats. Two barriers a step.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void block_per_column_serial_sum_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  GAUGEBLOCK_DYNAMIC_SHARED(float, product);
  const Index i = threadIdx.x;
  const Index j = blockIdx.x % views.V, bh = blockIdx.x / views.V, h = bh % views.H, b = bh / views.H;

  float state = load_initial_state(tensors, views, b, h, i, j);
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float k = tensors.k[views.k.at(b, t, h, i)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    const float q = tensors.q[views.q.at(b, t, h, i)];
    state = fmaf(gate, state, (beta * k) * v);
    product[i] = q * state;
    __syncthreads();  // all products are there before thread 0 adds them
    if (i == 0) {
      float sum = 0;
      // Rolled: nvcc 13 would load the last one to three products as one vector, past the end of the array
      // when K is no multiple of 4. The surplus is never used, but a memory checker is right to object.
      GAUGEBLOCK_ROLLED
      for (Index row = 0; row < views.K; ++row) {
        const float term = product[row];
        sum += term;
      }
      tensors.y[views.y.at(b, t, h, j)] = sum;
    }
    __syncthreads();  // thread 0 has read them before the next step overwrites them
  }
  tensors.final_state[views.final_state.at(b, h, i, j)] = state;
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (arguments.key_size() > 1024)
    return "K = " + std::to_string(arguments.key_size()) + ": a thread a row, and a block has at most 1024";
  return too_many_blocks(arguments.batches() * arguments.heads() * arguments.value_size());
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  launch(GAUGEBLOCK_KERNEL(block_per_column_serial_sum_kernel), grid_of(views.B * views.H * views.V),
         dim3(static_cast<unsigned>(views.K)), floats_bytes(views.K), context, views);
}

}  // namespace

RecurrenceKernel block_per_column_serial_sum() {
  return {"block_per_column_serial_sum",
          "a block per column, a thread per row; thread 0 adds the products one by one",
          "sequential",
          0,
          declines,
          run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
