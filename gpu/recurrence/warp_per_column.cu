// Differs from `shared_state`: a warp per column (b,h,j), lane i keeps S[i] in a register, and the lanes'
// products are added by shuffles. Nothing goes through shared memory and no barrier is needed.
//
//     lane i:  S = gate_t · S + (beta_t · k_t[i]) · v_t[j];  y_t[j] = Σ over the lanes of q_t[i] · S
//
// Takes K up to 32. Lanes from K on load nothing and add 0: they must still come to every shuffle, whose mask
// names all 32. Three launch shapes, the same arithmetic: a block holds one column, eight, or all columns of
// a (b,h).
#include "gaugeblock/gpu/recurrence/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__device__ inline float warp_sum(float value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

/// `columns_per_block` warps a block; the last block may have warps without a column.
__global__ void warp_per_column_kernel(RecurrenceViews views, Index columns_per_block) {
  const Tensors tensors(views);
  const Index i = threadIdx.x % 32;
  const Index column = blockIdx.x * columns_per_block + threadIdx.x / 32;
  if (column >= views.B * views.H * views.V) return;  // the same for all lanes of the warp
  const Index j = column % views.V, bh = column / views.V, h = bh % views.H, b = bh / views.H;
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
    const float sum = warp_sum(product);
    if (i == 0) tensors.y[views.y.at(b, t, h, j)] = sum;
  }
  if (has_row) tensors.final_state[views.final_state.at(b, h, i, j)] = state;
}

std::optional<std::string> declines_columns(const RecurrenceArguments& arguments, Index columns_per_block) {
  if (arguments.key_size() > 32)
    return "K = " + std::to_string(arguments.key_size()) + ": a lane a row, and a warp has 32";
  return too_many_blocks(
      ceil_div(arguments.batches() * arguments.heads() * arguments.value_size(), columns_per_block));
}

void run_columns(const RecurrenceArguments& arguments, LaunchContext& context, Index columns_per_block) {
  const RecurrenceViews views = views_of(arguments);
  launch(GAUGEBLOCK_KERNEL(warp_per_column_kernel),
         grid_of(ceil_div(views.B * views.H * views.V, columns_per_block)),
         dim3(static_cast<unsigned>(32 * columns_per_block)), 0, context, views, columns_per_block);
}

}  // namespace

RecurrenceKernel warp_per_column() {
  return {"warp_per_column",
          "a warp per column, a lane per row, the sum by shuffles; a block is one column",
          "sequential",
          0,
          [](const RecurrenceArguments& arguments) { return declines_columns(arguments, 1); },
          [](const RecurrenceArguments& arguments, LaunchContext& context) {
            run_columns(arguments, context, 1);
          }};
}

RecurrenceKernel warp_per_column_by_eight() {
  return {"warp_per_column_by_eight",
          "the same warps, eight to a block: fewer blocks, the same arithmetic",
          "sequential",
          0,
          [](const RecurrenceArguments& arguments) { return declines_columns(arguments, 8); },
          [](const RecurrenceArguments& arguments, LaunchContext& context) {
            run_columns(arguments, context, 8);
          }};
}

RecurrenceKernel warp_per_column_by_head() {
  return {"warp_per_column_by_head",
          "the same warps, all columns of a (b,h) in one block, which share its loads",
          "sequential",
          0,
          [](const RecurrenceArguments& arguments) -> std::optional<std::string> {
            if (arguments.value_size() > 32)
              return "V = " + std::to_string(arguments.value_size()) +
                     ": a warp a column, and a block has at most 32";
            return declines_columns(arguments, arguments.value_size());
          },
          [](const RecurrenceArguments& arguments, LaunchContext& context) {
            run_columns(arguments, context, arguments.value_size());
          }};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
