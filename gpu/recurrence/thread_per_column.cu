// Differs from `block_per_column_serial_sum`: a thread per column (b,h,j) keeps the whole column itself, so
// nothing is shared and nothing waits.
//
//     thread j:  for i:  S[i] = gate_t · S[i] + (beta_t · k_t[i]) · v_t[j];  y_t[j] += q_t[i] · S[i]
//
// Registers cannot be indexed by a loop whose length is not known at compile time. So K = 8, 16, 24, 32 and
// 64, where the column fits into registers, are compiled each for itself; for any other K the column lives in
// the output final_state, which holds the state after every step anyway.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr unsigned threads = 64;

template <int K>
__global__ void __launch_bounds__(threads) thread_per_column_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  const Index column = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (column >= views.B * views.H * views.V) return;
  const Index j = column % views.V, bh = column / views.V, h = bh % views.H, b = bh / views.H;

  float state[K];
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < K; ++i) state[i] = load_initial_state(tensors, views, b, h, i, j);
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    float sum = 0;
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < K; ++i) {
      const float k = tensors.k[views.k.at(b, t, h, i)];
      const float q = tensors.q[views.q.at(b, t, h, i)];
      state[i] = fmaf(gate, state[i], (beta * k) * v);
      sum = fmaf(q, state[i], sum);
    }
    tensors.y[views.y.at(b, t, h, j)] = sum;
  }
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < K; ++i) tensors.final_state[views.final_state.at(b, h, i, j)] = state[i];
}

__global__ void __launch_bounds__(threads) thread_per_column_any_k_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  const Index column = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (column >= views.B * views.H * views.V) return;
  const Index j = column % views.V, bh = column / views.V, h = bh % views.H, b = bh / views.H;

  for (Index i = 0; i < views.K; ++i)
    tensors.final_state[views.final_state.at(b, h, i, j)] = load_initial_state(tensors, views, b, h, i, j);
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    float sum = 0;
    for (Index i = 0; i < views.K; ++i) {
      const float k = tensors.k[views.k.at(b, t, h, i)];
      const float q = tensors.q[views.q.at(b, t, h, i)];
      const Index at = views.final_state.at(b, h, i, j);
      float state = tensors.final_state[at];
      state = fmaf(gate, state, (beta * k) * v);
      tensors.final_state[at] = state;
      sum = fmaf(q, state, sum);
    }
    tensors.y[views.y.at(b, t, h, j)] = sum;
  }
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  return too_many_blocks(ceil_div(arguments.batches() * arguments.heads() * arguments.value_size(), threads));
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  const dim3 grid = grid_of(ceil_div(views.B * views.H * views.V, threads));
  const auto with = [&](auto kernel) { launch(kernel, grid, dim3(threads), 0, context, views); };
  switch (views.K) {
    case 8:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_kernel<8>));
    case 16:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_kernel<16>));
    case 24:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_kernel<24>));
    case 32:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_kernel<32>));
    case 64:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_kernel<64>));
    default:
      return with(GAUGEBLOCK_KERNEL(thread_per_column_any_k_kernel));
  }
}

}  // namespace

RecurrenceKernel thread_per_column() {
  return {"thread_per_column",
          "a thread keeps a whole column in registers: nothing is shared, nothing waits",
          "sequential",
          0,
          declines,
          run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
