// Differs from `warp_per_column`: several warps share a column, so K may be larger than 32. Each warp adds
// its 32 products by shuffles; the warps' sums meet in shared memory and thread 0 adds those.
//
//     thread i:  S = gate_t · S + (beta_t · k_t[i]) · v_t[j];  sum of warp w → partial[w]
//     thread 0:  y_t[j] = Σ_w partial[w]
//
// Takes K up to 1024. One barrier a step: the partial sums of odd and even steps lie apart, so that a warp
// may write those of the next step while thread 0 still reads those of this one.
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int max_warps = 32;

__device__ inline float warp_sum(float value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

__global__ void warps_per_column_kernel(RecurrenceViews views) {
  const Tensors tensors(views);
  GAUGEBLOCK_STATIC_SHARED(float, partial, 2 * max_warps);
  const Index i = threadIdx.x;
  const Index j = blockIdx.x % views.V, bh = blockIdx.x / views.V, h = bh % views.H, b = bh / views.H;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const bool has_row = i < views.K;

  float state = 0;
  if (has_row) state = load_initial_state(tensors, views, b, h, i, j);
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    float product = 0;
    if (has_row) {
      const float k = tensors.k[views.k.at(b, t, h, i)];
      const float q = tensors.q[views.q.at(b, t, h, i)];
      state = fmaf(gate, state, (beta * k) * v);
      product = q * state;
    }
    const float warp_total = warp_sum(product);
    const int half = static_cast<int>(t % 2) * max_warps;
    if (i % 32 == 0) partial[half + i / 32] = warp_total;
    __syncthreads();  // all partial sums are there; and thread 0 has read those of the step before
    if (i == 0) {
      float sum = 0;
      for (int warp = 0; warp < warps; ++warp) {
        const float term = partial[half + warp];
        sum += term;
      }
      tensors.y[views.y.at(b, t, h, j)] = sum;
    }
  }
  if (has_row) tensors.final_state[views.final_state.at(b, h, i, j)] = state;
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (arguments.key_size() > 32 * max_warps)
    return "K = " + std::to_string(arguments.key_size()) + ": a thread a row, and a block has at most 1024";
  return too_many_blocks(arguments.batches() * arguments.heads() * arguments.value_size());
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  launch(GAUGEBLOCK_KERNEL(warps_per_column_kernel), grid_of(views.B * views.H * views.V),
         dim3(static_cast<unsigned>(ceil_div(views.K, 32) * 32)), 0, context, views);
}

}  // namespace

RecurrenceKernel warps_per_column() {
  return {"warps_per_column", "several warps a column, so K may pass 32; their sums meet in shared memory",
          "sequential",       0,
          declines,           run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
