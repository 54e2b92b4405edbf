// Differs from `scan_then_contract`: the gates are scanned once, for all elements, and taken out of the
// state. What is left is a plain sum, in closed form:
//
//     P_t = Π_{r≤t} gate_r        W_t = S_0 + Σ_{s≤t} (beta_s / P_s) k_s v_sᵀ        y_t = P_t · q_tᵀ W_t
//
// The price is range. P, the divided writes and their contraction with q must stay normal numbers:
//
//     2^-125 <= |P_t| < 2^126,    size = max|S_0| + Σ_s |beta_s| max(1,|k_s|) max(1,|v_s|) / |P_s| < 2^120,
//     max(1, Σ_i |q_t[i]|) · size < 2^126
//
// decided on the device, in float64, from the inputs. `prefix_product` declines a problem that leaves this
// range; `prefix_product_segmented` starts again (W ← P·W, P ← 1) before P leaves half of it, and takes a
// step that is outside by itself, a gate of 0 say, as the definition has it. Three kernels: the sizes of
// every step; the scan of the gates; the closed form. Takes any K and V: a thread has a column W in the
// output final_state.
#include <bit>
#include <cmath>
#include <vector>

#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / 32;

enum Step : int {
  extend = 0,              // the step joins the segment
  restart_and_extend = 1,  // a new segment starts with it
  restart_and_define = 2   // taken as the definition has it, then a new segment starts
};

/// Where a segment has to stay: lowest <= |P| < highest, size < largest, max(1, Σ|q|) · size < largest_sum.
struct Range {
  double lowest, highest, largest, largest_sum;
};

__device__ inline float warp_max(float value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
  return value;
}

__device__ inline double warp_sum(double value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

/// write_size[b,h,t] = |beta_t| max(1,|k_t|) max(1,|v_t|), query_size[b,h,t] = max(1, Σ|q_t|): a warp per
/// step.
__global__ void __launch_bounds__(threads)
    step_sizes_kernel(RecurrenceViews views, double* write_size_, double* query_size_) {
  const Tensors tensors(views);
  const simt::Global<double> write_size(write_size_), query_size(query_size_);
  const Index at = static_cast<Index>(blockIdx.x) * warps + threadIdx.x / 32;
  if (at >= views.B * views.H * views.T) return;  // the same for all lanes of the warp
  const Index t = at % views.T, bh = at / views.T, h = bh % views.H, b = bh / views.H;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float largest_k = 1, largest_v = 1;
  double sum_q = 0;
  for (Index i = lane; i < views.K; i += 32) {
    const float k = tensors.k[views.k.at(b, t, h, i)];
    const float q = tensors.q[views.q.at(b, t, h, i)];
    largest_k = fmaxf(largest_k, fabsf(k));
    sum_q += fabsf(q);
  }
  for (Index j = lane; j < views.V; j += 32) {
    const float v = tensors.v[views.v.at(b, t, h, j)];
    largest_v = fmaxf(largest_v, fabsf(v));
  }
  largest_k = warp_max(largest_k);
  largest_v = warp_max(largest_v);
  sum_q = warp_sum(sum_q);
  if (lane == 0) {
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    write_size[at] = static_cast<double>(fabsf(beta)) * largest_k * largest_v;
    query_size[at] = sum_q < 1 ? 1.0 : sum_q;
  }
}

/// product[b,h,t] = P_t since the start of its segment; step[b,h,t]; outside[b,h] = the first step outside
/// the range, or -1. A warp per (b,h) finds max|S_0| together; lane 0 then walks over the steps.
template <bool Segmented>
__global__ void __launch_bounds__(threads)
    scan_gates_kernel(RecurrenceViews views, Range range, const double* write_size_,
                      const double* query_size_, float* product_, int* step_, int* outside_) {
  const Tensors tensors(views);
  const simt::Global<const double> write_size(write_size_), query_size(query_size_);
  const simt::Global<float> product(product_);
  const simt::Global<int> step(step_);
  const simt::Global<int> outside(outside_);
  const Index bh = static_cast<Index>(blockIdx.x) * warps + threadIdx.x / 32;
  if (bh >= views.B * views.H) return;  // the same for all lanes of the warp
  const Index h = bh % views.H, b = bh / views.H;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float largest_state = 0;
  if (views.initial_state.data != nullptr)
    for (Index at = lane; at < views.K * views.V; at += 32)
      largest_state =
          fmaxf(largest_state, fabsf(load_initial_state(tensors, views, b, h, at / views.V, at % views.V)));
  largest_state = warp_max(largest_state);
  if (lane != 0) return;

  const auto inside = [&](double p, double size, double query) {
    return p >= range.lowest && p < range.highest && size < range.largest && size * query < range.largest_sum;
  };
  double size = largest_state, magnitude = 1;  // of W, of P
  float p = 1;
  int first_outside = -1;
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const double gate_size = fabsf(gate);
    const double write = write_size[bh * views.T + t];
    const double query = query_size[bh * views.T + t];
    int kind = extend;
    double next_magnitude = magnitude * gate_size, next_size = size + write / next_magnitude;
    if (!inside(next_magnitude, next_size, query)) {
      if (first_outside < 0) first_outside = static_cast<int>(t);
      if (Segmented) {
        size *= magnitude;
        magnitude = 1;
        p = 1;
        kind = restart_and_extend;
        next_magnitude = gate_size;
        next_size = size + write / next_magnitude;
        if (!inside(next_magnitude, next_size, query)) kind = restart_and_define;
      }
    }
    if (kind == restart_and_define) {
      size = size * gate_size + write;
    } else {
      size = next_size;
      magnitude = next_magnitude;
      p *= gate;
    }
    product[bh * views.T + t] = p;
    step[bh * views.T + t] = kind;
  }
  outside[bh] = first_outside;
}

/// A thread per column (b,h,j); W lies in final_state.
__global__ void __launch_bounds__(threads)
    closed_form_kernel(RecurrenceViews views, const float* product_, const int* step_) {
  const Tensors tensors(views);
  const simt::Global<const float> product(product_);
  const simt::Global<const int> step(step_);
  const simt::Global<float>& w = tensors.final_state;
  const Index column = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (column >= views.B * views.H * views.V) return;
  const Index j = column % views.V, bh = column / views.V, h = bh % views.H, b = bh / views.H;

  for (Index i = 0; i < views.K; ++i)
    w[views.final_state.at(b, h, i, j)] = load_initial_state(tensors, views, b, h, i, j);
  float p = 1;
  for (Index t = 0; t < views.T; ++t) {
    const int kind = step[bh * views.T + t];
    if (kind != extend)
      for (Index i = 0; i < views.K; ++i) w[views.final_state.at(b, h, i, j)] *= p;
    p = product[bh * views.T + t];
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    const float divided = beta / p;  // p is 1 after a step taken by the definition
    float sum = 0;
    for (Index i = 0; i < views.K; ++i) {
      const float k = tensors.k[views.k.at(b, t, h, i)];
      const float q = tensors.q[views.q.at(b, t, h, i)];
      const Index at = views.final_state.at(b, h, i, j);
      float element = w[at];
      if (kind == restart_and_define) element *= gate;
      element = fmaf(divided * k, v, element);
      w[at] = element;
      sum = fmaf(q, element, sum);
    }
    tensors.y[views.y.at(b, t, h, j)] = p * sum;
  }
  for (Index i = 0; i < views.K; ++i) w[views.final_state.at(b, h, i, j)] *= p;
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  const Index bh = arguments.batches() * arguments.heads();
  if (auto reason = too_much_workspace(6 * bh * arguments.steps())) return reason;
  if (auto reason = too_many_blocks(ceil_div(bh * arguments.steps(), warps))) return reason;
  return too_many_blocks(ceil_div(bh * arguments.value_size(), threads));
}

/// The first (b,h) that left the range, if any.
void decline_outside(const DeviceBuffer& outside, const RecurrenceViews& views) {
  const std::vector<float> words = outside.download();
  for (std::size_t bh = 0; bh < words.size(); ++bh) {
    const int t = std::bit_cast<int>(words[bh]);
    if (t >= 0)
      throw Declined("the prefix product of the gates leaves its range at b=" +
                     std::to_string(static_cast<Index>(bh) / views.H) + ", t=" + std::to_string(t) +
                     ", h=" + std::to_string(static_cast<Index>(bh) % views.H) +
                     ": 2^-125 <= |P| < 2^126, writes / |P| < 2^120 and |q| times that < 2^126 are needed");
  }
}

template <bool Segmented>
void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  // Half of the exponents, so that a restart comes long before a rounding of P could matter.
  const double margin = Segmented ? 0.5 : 1;
  const Range range{std::exp2(-125 * margin), std::exp2(126 * margin), std::exp2(120), std::exp2(126)};
  const Index rows = views.B * views.H, steps = rows * views.T;
  const DeviceBuffer write_size(*context.device, 2 * steps, "write_size");  // float64
  const DeviceBuffer query_size(*context.device, 2 * steps, "query_size");  // float64
  const DeviceBuffer product(*context.device, steps, "product");
  const DeviceBuffer step(*context.device, steps, "step");       // int
  const DeviceBuffer outside(*context.device, rows, "outside");  // int
  auto* write_sizes = reinterpret_cast<double*>(write_size.data());
  auto* query_sizes = reinterpret_cast<double*>(query_size.data());
  auto* step_kinds = reinterpret_cast<int*>(step.data());
  if (steps > 0)
    launch(GAUGEBLOCK_KERNEL(step_sizes_kernel), grid_of(ceil_div(steps, warps)), dim3(threads), 0, context,
           views, write_sizes, query_sizes);
  launch(GAUGEBLOCK_KERNEL(scan_gates_kernel<Segmented>), grid_of(ceil_div(rows, warps)), dim3(threads), 0,
         context, views, range, write_sizes, query_sizes, product.data(), step_kinds,
         reinterpret_cast<int*>(outside.data()));
  if (!Segmented) decline_outside(outside, views);
  launch(GAUGEBLOCK_KERNEL(closed_form_kernel), grid_of(ceil_div(rows * views.V, threads)), dim3(threads), 0,
         context, views, product.data(), step_kinds);
}

}  // namespace

RecurrenceKernel prefix_product() {
  return {"prefix_product", "the gates are scanned once and taken out: a closed form, within a limited range",
          "prefix_product", 0,
          declines,         run<false>};
}

RecurrenceKernel prefix_product_segmented() {
  return {"prefix_product_segmented",
          "the same, restarted before it leaves its range: every gate is legal",
          "prefix_product_segmented",
          0,
          declines,
          run<true>};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
