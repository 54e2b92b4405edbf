// Differs from all before: time runs in parallel. A step of element (i,j) is the map S → g·S + u, with g =
// gate_t and u = beta_t k_t[i] v_t[j]; maps compose,
//
//     (g1, u1) then (g2, u2)  =  (g2 g1, g2 u1 + u2),
//
// and composing is associative. So a warp takes an element (b,h,i,j) and scans 32 steps at once, lane by
// step, in five rounds of shuffles; the state after every step is stored, and a second kernel contracts it
// with q.
//
// Takes any K and V for which the B·T·H·K·V states fit into the workspace.
#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int threads = 256;
constexpr int elements = threads / 32;  // of a block, a warp each
constexpr unsigned all_lanes = 0xffffffffU;

/// states[b,h,t,i,j], contiguous
__global__ void __launch_bounds__(threads) scan_kernel(RecurrenceViews views, float* states_) {
  const Tensors tensors(views);
  const simt::Global<float> states(states_);
  const Index K = views.K, V = views.V, T = views.T;
  const Index element = static_cast<Index>(blockIdx.x) * elements + threadIdx.x / 32;
  if (element >= views.B * views.H * K * V) return;  // the same for all lanes of the warp
  const Index j = element % V, i = element / V % K, bh = element / (V * K), h = bh % views.H,
              b = bh / views.H;
  const int lane = static_cast<int>(threadIdx.x) % 32;

  float carried = load_initial_state(tensors, views, b, h, i, j);
  for (Index t0 = 0; t0 < T; t0 += 32) {
    const Index t = t0 + lane;
    float g = 1, u = 0;  // lanes past the end: the map that changes nothing
    if (t < T) {
      g = tensors.gate[views.gate.at(b, t, h)];
      const float beta = tensors.beta[views.beta.at(b, t, h)];
      const float k = tensors.k[views.k.at(b, t, h, i)];
      const float v = tensors.v[views.v.at(b, t, h, j)];
      u = (beta * k) * v;
    }
    GAUGEBLOCK_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      const float g_before = __shfl_up_sync(all_lanes, g, distance);
      const float u_before = __shfl_up_sync(all_lanes, u, distance);
      if (lane >= distance) {
        u = fmaf(g, u_before, u);
        g = g * g_before;
      }
    }
    const float state = fmaf(g, carried, u);
    if (t < T) states[(bh * T + t) * (K * V) + i * V + j] = state;
    carried = __shfl_sync(all_lanes, state, 31);
  }
  if (lane == 0) tensors.final_state[views.final_state.at(b, h, i, j)] = carried;
}

__global__ void __launch_bounds__(threads) contract_kernel(RecurrenceViews views, const float* states_) {
  const Tensors tensors(views);
  const simt::Global<const float> states(states_);
  const Index K = views.K, V = views.V, T = views.T;
  const Index at = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (at >= views.B * views.H * T * V) return;
  const Index j = at % V, t = at / V % T, bh = at / (V * T), h = bh % views.H, b = bh / views.H;
  float sum = 0;
  for (Index i = 0; i < K; ++i) {
    const float q = tensors.q[views.q.at(b, t, h, i)];
    const float state = states[(bh * T + t) * (K * V) + i * V + j];
    sum = fmaf(q, state, sum);
  }
  tensors.y[views.y.at(b, t, h, j)] = sum;
}

Index workspace_floats(const RecurrenceArguments& arguments) {
  return arguments.batches() * arguments.heads() * arguments.steps() * arguments.key_size() *
         arguments.value_size();
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (auto reason = too_much_workspace(workspace_floats(arguments))) return reason;
  const Index bh = arguments.batches() * arguments.heads();
  if (auto reason = too_many_blocks(ceil_div(bh * arguments.key_size() * arguments.value_size(), elements)))
    return reason;
  return too_many_blocks(ceil_div(bh * arguments.steps() * arguments.value_size(), threads));
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  const DeviceBuffer states(*context.device, workspace_floats(arguments), "states");
  launch(GAUGEBLOCK_KERNEL(scan_kernel), grid_of(ceil_div(views.B * views.H * views.K * views.V, elements)),
         dim3(threads), 0, context, views, states.data());
  if (views.T == 0) return;  // no outputs to contract
  launch(GAUGEBLOCK_KERNEL(contract_kernel),
         grid_of(ceil_div(views.B * views.H * views.T * views.V, threads)), dim3(threads), 0, context, views,
         states.data());
}

}  // namespace

RecurrenceKernel scan_then_contract() {
  return {"scan_then_contract",
          "every element of the state is scanned over time in parallel, then contracted",
          "scan",
          32,  // steps at once by a tree; the state is carried from one lot to the next
          declines,
          run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
