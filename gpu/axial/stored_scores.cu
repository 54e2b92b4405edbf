// Differs from `thread_per_token_head`: every score is computed once and stored. One head after the other has
// its whole matrix of scores [L,L] in shared memory, as in the definition:
//
//     a thread per (query, key):       score[query,key] = q · k / √d
//     a thread per query:              score[query,·] ← exp(score - max);  sum[query] = Σ of these
//     a thread per (query, channel):   o[query,c] = Σ score[query,key] v[key,c] / sum[query]
//
// Takes L with 4·L·D + L·(L + 1) floats of shared memory. Three barriers a head.
#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void __launch_bounds__(max_block_threads) stored_scores_kernel(AxialPass pass) {
  const PassTensors tensors(pass);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D), heads = static_cast<int>(pass.heads);
  const int d = D / heads, thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const BlockSequence sequence = block_sequence(pass);
  const auto n = shared.slice(0, L * D);  // x, then n, then o
  const auto q = shared.slice(L * D, L * D);
  const auto k = shared.slice(2 * L * D, L * D);
  const auto v = shared.slice(3 * L * D, L * D);
  const auto score = shared.slice(4 * L * D, L * L);
  const auto sums = shared.slice(4 * L * D + L * L, L);

  load_sequence(pass, tensors, sequence, n);
  __syncthreads();  // a token has all its channels before it is normalised
  normalize_sequence(pass, tensors, n);
  __syncthreads();  // every token is normalised before it is projected
  project_qkv(pass, tensors, n, q, k, v);
  __syncthreads();  // all of q, k and v are there before they are used; n is read before o overwrites it

  const auto& o = n;
  const float scale = logit_scale(d);
  for (int first = 0; first < D; first += d) {  // channel of the head
    for (int at = thread; at < L * L; at += threads)
      score[at] = logit(q + (at / L * D + first), k + (at % L * D + first), d, scale);
    __syncthreads();  // a query has all its scores before their largest is taken
    for (int query = thread; query < L; query += threads) {
      float largest = -INFINITY;
      for (int key = 0; key < L; ++key) {
        const float z = score[query * L + key];
        largest = fmaxf(largest, z);
      }
      float sum = 0;
      for (int key = 0; key < L; ++key) {
        const float z = score[query * L + key];
        const float weight = expf(z - largest);
        score[query * L + key] = weight;
        sum += weight;
      }
      sums[query] = sum;
    }
    __syncthreads();  // all weights are there before they are applied to v
    for (int at = thread; at < L * d; at += threads) {
      const int query = at / d, c = first + at % d;
      float weighted = 0;
      for (int key = 0; key < L; ++key) {
        const float weight = score[query * L + key];
        const float v_key = v[key * D + c];
        weighted = fmaf(weight, v_key, weighted);
      }
      const float sum = sums[query];
      o[query * D + c] = weighted / sum;
    }
    __syncthreads();  // the weights are used before the next head's scores overwrite them; after the last: o
                      // is there
  }
  project_out(pass, tensors, sequence, n);
}

Index shared_floats(const AxialPass& pass) {
  return 4 * pass.L * pass.D + pass.L * (pass.L + 1);
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments,
                        [](const AxialPass& pass) { return block_pass_declines(pass, shared_floats(pass)); });
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) {
    const TransposedWeights weights(pass, context);
    launch(GAUGEBLOCK_KERNEL(stored_scores_kernel), grid_of(pass.sequences()), block_of(pass),
           floats_bytes(shared_floats(pass)), context, weights.pass());
  });
}

}  // namespace

AxialKernel stored_scores() {
  return {"stored_scores", "a head's whole matrix of scores in shared memory, each computed once", "unfused",
          declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
