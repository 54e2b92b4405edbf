// Differs from `stored_scores` and `thread_per_token_head`: each score is computed once and yet none is
// stored. A thread per (head, token) goes over its keys once, with a running maximum m; whenever that grows,
// the sums so far are scaled to the new one.
//
//     m' = max(m, z)     sum ← sum · exp(m - m') + exp(z - m')     o ← o · exp(m - m') + exp(z - m') · v
//
// The first key begins with m = z, a sum of 1 and o = v. Takes L with 4·L·D floats of shared memory.
#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void __launch_bounds__(max_block_threads) online_softmax_kernel(AxialPass pass) {
  const PassTensors tensors(pass);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D), heads = static_cast<int>(pass.heads);
  const int d = D / heads;
  const BlockSequence sequence = block_sequence(pass);
  const auto n = shared.slice(0, L * D);  // x, then n, then o
  const auto q = shared.slice(L * D, L * D);
  const auto k = shared.slice(2 * L * D, L * D);
  const auto v = shared.slice(3 * L * D, L * D);

  load_sequence(pass, tensors, sequence, n);
  __syncthreads();  // a token has all its channels before it is normalised
  normalize_sequence(pass, tensors, n);
  __syncthreads();  // every token is normalised before it is projected
  project_qkv(pass, tensors, n, q, k, v);
  __syncthreads();  // all of q, k and v are there before they are used; n is read before o overwrites it

  const float scale = logit_scale(d);
  for (int at = static_cast<int>(threadIdx.x); at < heads * L; at += static_cast<int>(blockDim.x)) {
    const int query = at % L, first = at / L * d;  // channel of the head
    const auto q_head = q + (query * D + first);
    const auto o_head = n + (query * D + first);
    float largest = logit(q_head, k + first, d, scale);
    float sum = 1;
    for (int i = 0; i < d; ++i) {
      const float v_key = v[first + i];
      o_head[i] = v_key;
    }
    for (int key = 1; key < L; ++key) {
      const float z = logit(q_head, k + (key * D + first), d, scale);
      const float larger = fmaxf(largest, z);
      const float shrink = expf(largest - larger);
      const float weight = expf(z - larger);
      sum = fmaf(sum, shrink, weight);
      for (int i = 0; i < d; ++i) {
        const float v_key = v[key * D + first + i];
        const float weighted = o_head[i];
        o_head[i] = fmaf(weight, v_key, weighted * shrink);
      }
      largest = larger;
    }
    for (int i = 0; i < d; ++i) {
      const float weighted = o_head[i];
      o_head[i] = weighted / sum;
    }
  }
  __syncthreads();  // all heads of o are there before they are projected
  project_out(pass, tensors, sequence, n);
}

Index shared_floats(const AxialPass& pass) {
  return 4 * pass.L * pass.D;
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments,
                        [](const AxialPass& pass) { return block_pass_declines(pass, shared_floats(pass)); });
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) {
    const TransposedWeights weights(pass, context);
    launch(GAUGEBLOCK_KERNEL(online_softmax_kernel), grid_of(pass.sequences()), block_of(pass),
           floats_bytes(shared_floats(pass)), context, weights.pass());
  });
}

}  // namespace

AxialKernel online_softmax() {
  return {"online_softmax", "one reading of the keys: a running maximum, and sums rescaled when it grows",
          "online_softmax", declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
