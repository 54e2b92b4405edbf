// Differs from `fused_row_column`: the attention has a thread for each (head, token), and no score is stored.
// Each thread goes over its keys twice and computes every score both times: once for the largest, once for
// the weights, which it applies to v at once.
//
//     thread (h, query):   largest = max over the keys of q · k / √d
//                          o[query,h] = Σ exp(q · k / √d - largest) v / Σ exp(q · k / √d - largest)
//
// No barrier for a query, only one between the steps. The other steps have a thread for each (token,
// channel). Takes L with 4·L·D floats of shared memory. Lanes of neighbouring tokens read the same word of k
// and v.
#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void __launch_bounds__(max_block_threads) thread_per_token_head_kernel(AxialPass pass) {
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
    float largest = -INFINITY;
    for (int key = 0; key < L; ++key)
      largest = fmaxf(largest, logit(q_head, k + (key * D + first), d, scale));
    float sum = 0;
    for (int i = 0; i < d; ++i) o_head[i] = 0;
    for (int key = 0; key < L; ++key) {
      const float weight = expf(logit(q_head, k + (key * D + first), d, scale) - largest);
      sum += weight;
      for (int i = 0; i < d; ++i) {
        const float v_key = v[key * D + first + i];
        const float weighted = o_head[i];
        o_head[i] = fmaf(weight, v_key, weighted);
      }
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
    launch(GAUGEBLOCK_KERNEL(thread_per_token_head_kernel), grid_of(pass.sequences()), block_of(pass),
           floats_bytes(shared_floats(pass)), context, weights.pass());
  });
}

}  // namespace

AxialKernel thread_per_token_head() {
  return {"thread_per_token_head",
          "attention with a thread per (token, head): scores recomputed instead of stored", "unfused",
          declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
