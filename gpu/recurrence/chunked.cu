// Differs from `scan_then_contract`: states are stored at the starts of chunks of 16 steps only; inside a
// chunk, each output is taken from the start's state and from the chunk's own writes by masked attention.
//
//     writes:   U_c = Σ_{s in c} (Π_{r>s in c} gate_r · beta_s · k_s) v_sᵀ        all chunks in parallel
//     carry:    S_{c+1} = (Π_{r in c} gate_r) S_c + U_c                            all elements in parallel
//     outputs:  y_t = (Π_{r≤t in c} gate_r) q_tᵀ S_c + Σ_{s≤t in c} (Π_{s<r≤t} gate_r · beta_s · (q_t·k_s)) v_s
//
// Decay windows are products of gates inside one chunk: no logarithm, no division, any gate. The mask is a
// loop's end: a step that must not count is never read. Takes any K and V for which the states of all chunks
// fit into the workspace.
#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int chunk = 16;
constexpr int threads = 128;

struct Place {
  Index b, h, first, end;  // steps first … end-1 of (b,h)
};

__device__ inline Place place_of(const RecurrenceViews& views, Index block, Index chunks) {
  const Index bh = block / chunks, first = block % chunks * chunk;
  return {bh / views.H, bh % views.H, first, first + chunk < views.T ? first + chunk : views.T};
}

/// states[b,h,c,i,j] becomes U_c: a block per chunk.
__global__ void __launch_bounds__(threads)
    writes_kernel(RecurrenceViews views, Index chunks, float* states_) {
  const Tensors tensors(views);
  const simt::Global<float> states(states_);
  const Place place = place_of(views, blockIdx.x, chunks);
  const Index K = views.K, V = views.V;
  for (Index at = threadIdx.x; at < K * V; at += threads) {
    const Index i = at / V, j = at % V;
    float sum = 0, decay = 1;
    for (Index s = place.end - 1; s >= place.first; --s) {
      const float beta = tensors.beta[views.beta.at(place.b, s, place.h)];
      const float k = tensors.k[views.k.at(place.b, s, place.h, i)];
      const float v = tensors.v[views.v.at(place.b, s, place.h, j)];
      const float gate = tensors.gate[views.gate.at(place.b, s, place.h)];
      sum = fmaf((decay * beta) * k, v, sum);
      decay *= gate;
    }
    states[static_cast<Index>(blockIdx.x) * (K * V) + at] = sum;
  }
}

/// U_c is replaced by the state before chunk c: a thread per element.
__global__ void __launch_bounds__(threads) carry_kernel(RecurrenceViews views, Index chunks, float* states_) {
  const Tensors tensors(views);
  const simt::Global<float> states(states_);
  const Index K = views.K, V = views.V;
  const Index element = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (element >= views.B * views.H * K * V) return;
  const Index j = element % V, i = element / V % K, bh = element / (V * K), h = bh % views.H,
              b = bh / views.H;
  float state = load_initial_state(tensors, views, b, h, i, j);
  for (Index c = 0; c < chunks; ++c) {
    const Index end = (c + 1) * chunk < views.T ? (c + 1) * chunk : views.T;
    float decay = 1;
    for (Index s = end - 1; s >= c * chunk; --s) {
      const float gate = tensors.gate[views.gate.at(b, s, h)];
      decay *= gate;
    }
    const Index at = (bh * chunks + c) * (K * V) + i * V + j;
    const float writes = states[at];
    states[at] = state;
    state = fmaf(decay, state, writes);
  }
  tensors.final_state[views.final_state.at(b, h, i, j)] = state;
}

/// A block per chunk: first all scores of the chunk, then its outputs.
__global__ void __launch_bounds__(threads)
    outputs_kernel(RecurrenceViews views, Index chunks, const float* states_) {
  const Tensors tensors(views);
  const simt::Global<const float> states(states_);
  GAUGEBLOCK_STATIC_SHARED(float, weight, chunk* chunk);  // of v_s in y_t
  GAUGEBLOCK_STATIC_SHARED(float, from_start, chunk);     // Π_{r≤t in the chunk} gate_r
  const Place place = place_of(views, blockIdx.x, chunks);
  const Index K = views.K, V = views.V, steps = place.end - place.first;

  for (Index at = threadIdx.x; at < steps * steps; at += threads) {
    const Index t = place.first + at / steps, s = place.first + at % steps;
    if (s > t) continue;
    float score = 0;
    for (Index i = 0; i < K; ++i) {
      const float q = tensors.q[views.q.at(place.b, t, place.h, i)];
      const float k = tensors.k[views.k.at(place.b, s, place.h, i)];
      score = fmaf(q, k, score);
    }
    float decay = 1;
    for (Index r = t; r > s; --r) {
      const float gate = tensors.gate[views.gate.at(place.b, r, place.h)];
      decay *= gate;
    }
    const float beta = tensors.beta[views.beta.at(place.b, s, place.h)];
    weight[at / steps * chunk + at % steps] = (decay * beta) * score;
    if (s == place.first) {
      const float gate = tensors.gate[views.gate.at(place.b, s, place.h)];
      from_start[at / steps] = decay * gate;
    }
  }
  __syncthreads();  // every weight is there before an output uses it
  for (Index at = threadIdx.x; at < steps * V; at += threads) {
    const Index step = at / V, j = at % V, t = place.first + step;
    float carried = 0;
    for (Index i = 0; i < K; ++i) {
      const float q = tensors.q[views.q.at(place.b, t, place.h, i)];
      const float state = states[static_cast<Index>(blockIdx.x) * (K * V) + i * V + j];
      carried = fmaf(q, state, carried);
    }
    float sum = 0;
    for (Index s = step; s >= 0; --s) {
      const float w = weight[step * chunk + s];
      const float v = tensors.v[views.v.at(place.b, place.first + s, place.h, j)];
      sum = fmaf(w, v, sum);
    }
    const float decay = from_start[step];
    tensors.y[views.y.at(place.b, t, place.h, j)] = fmaf(decay, carried, sum);
  }
}

Index chunks_of(const RecurrenceArguments& arguments) {
  return ceil_div(arguments.steps(), chunk);
}

Index workspace_floats(const RecurrenceArguments& arguments) {
  return arguments.batches() * arguments.heads() * chunks_of(arguments) * arguments.key_size() *
         arguments.value_size();
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (auto reason = too_much_workspace(workspace_floats(arguments))) return reason;
  const Index bh = arguments.batches() * arguments.heads();
  if (auto reason = too_many_blocks(bh * chunks_of(arguments))) return reason;
  return too_many_blocks(ceil_div(bh * arguments.key_size() * arguments.value_size(), threads));
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  const Index chunks = chunks_of(arguments);
  const DeviceBuffer states(*context.device, workspace_floats(arguments), "states");
  const Index blocks = views.B * views.H * chunks;
  if (blocks > 0)
    launch(GAUGEBLOCK_KERNEL(writes_kernel), grid_of(blocks), dim3(threads), 0, context, views, chunks,
           states.data());
  launch(GAUGEBLOCK_KERNEL(carry_kernel), grid_of(ceil_div(views.B * views.H * views.K * views.V, threads)),
         dim3(threads), 0, context, views, chunks, states.data());
  if (blocks > 0)
    launch(GAUGEBLOCK_KERNEL(outputs_kernel), grid_of(blocks), dim3(threads), 0, context, views, chunks,
           states.data());
}

}  // namespace

RecurrenceKernel chunked() {
  return {"chunked",
          "states at the starts of chunks only, all chunks in parallel; masked attention inside a chunk",
          "chunked",
          chunk,
          declines,
          run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
