// The first: a block does a whole pass over one sequence, a thread for each channel. The row pass finds the
// tokens of a sequence side by side; the column pass reads the same tensor in place, with the stride of H
// between tokens.
//
//     all threads:   x to shared memory
//     thread l:      n_l = LayerNorm(x_l), over x
//     thread c:      q[·,c], k[·,c], v[·,c] = n · W_qkvᵀ
//     each query:    all threads, over (head, key):   z[key] = q[query] · k[key] / √d
//                    thread c, of head c/d:           p[key] = exp(z[key] - max z)
//                                                     o[query,c] = Σ p[key] v[key,c] / Σ p[key]
//     thread c:      y[·,c] = x + (o · W_outᵀ + b_out)
//
// Takes D up to 1024, and L with (4·D + heads)·L floats of shared memory. Weights are transposed first, so
// that the threads read them side by side.
#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/axial/fused_row_column.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

__global__ void __launch_bounds__(1024) fused_pass_kernel(AxialPass pass) {
  const PassTensors tensors(pass);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D), heads = static_cast<int>(pass.heads);
  const int d = D / heads, c = static_cast<int>(threadIdx.x), head = c / d;
  const auto n = shared.slice(0, L * D);  // x, then n, then o
  const auto q = shared.slice(L * D, L * D);
  const auto k = shared.slice(2 * L * D, L * D);
  const auto v = shared.slice(3 * L * D, L * D);
  const auto score = shared.slice(4 * L * D, heads * L);
  const Index b = blockIdx.x / pass.others, other = blockIdx.x % pass.others;

  for (int token = 0; token < L; ++token) {
    const float x = tensors.x[pass.x.at(b, other, token, c)];
    n[token * D + c] = x;
  }
  __syncthreads();  // a token has all its channels before it is normalised
  for (int token = c; token < L; token += D) normalize_token(n + token * D, pass, tensors);
  __syncthreads();  // every token is normalised before it is projected

  for (int token = 0; token < L; ++token) {
    float q_sum = 0, k_sum = 0, v_sum = 0;
    for (int i = 0; i < D; ++i) {
      const float x = n[token * D + i];
      const float q_weight = tensors.qkv_weight[pass.qkv_weight.at(c, i)];
      const float k_weight = tensors.qkv_weight[pass.qkv_weight.at(D + c, i)];
      const float v_weight = tensors.qkv_weight[pass.qkv_weight.at(2 * D + c, i)];
      q_sum = fmaf(x, q_weight, q_sum);
      k_sum = fmaf(x, k_weight, k_sum);
      v_sum = fmaf(x, v_weight, v_sum);
    }
    q[token * D + c] = q_sum;
    k[token * D + c] = k_sum;
    v[token * D + c] = v_sum;
  }
  __syncthreads();  // all of q, k and v are there before they are used; n is read before o overwrites it

  const auto& o = n;
  const float scale = logit_scale(d);
  for (int query = 0; query < L; ++query) {
    for (int at = c; at < heads * L; at += D) {
      const int first = at / L * d;  // channel of the head
      score[at] = logit(q + (query * D + first), k + (at % L * D + first), d, scale);
    }
    __syncthreads();  // all scores of the query are there before they are weighed
    float largest = -INFINITY;
    for (int key = 0; key < L; ++key) {
      const float z = score[head * L + key];
      largest = fmaxf(largest, z);
    }
    float sum = 0, weighted = 0;
    for (int key = 0; key < L; ++key) {
      const float z = score[head * L + key];
      const float v_key = v[key * D + c];
      const float weight = expf(z - largest);
      sum += weight;
      weighted = fmaf(weight, v_key, weighted);
    }
    o[query * D + c] = weighted / sum;
    __syncthreads();  // all scores are read before the next query's overwrite them; after the last: o is
                      // there
  }

  for (int token = 0; token < L; ++token) {
    float sum = 0;
    for (int i = 0; i < D; ++i) {
      const float o_i = o[token * D + i];
      const float weight = tensors.out_weight[pass.out_weight.at(c, i)];
      sum = fmaf(o_i, weight, sum);
    }
    const float bias = tensors.out_bias[pass.out_bias.at(c)];
    const float x = tensors.x[pass.x.at(b, other, token, c)];
    tensors.y[pass.y.at(b, other, token, c)] = x + (sum + bias);
  }
}

Index shared_floats(const AxialPass& pass) {
  return (4 * pass.D + pass.heads) * pass.L;
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments, fused_pass_declines);
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) {
    const TransposedWeights weights(pass, context);
    launch_fused_pass(weights.pass(), context);
  });
}

}  // namespace

void launch_fused_pass(const AxialPass& pass, LaunchContext& context) {
  launch(GAUGEBLOCK_KERNEL(fused_pass_kernel), grid_of(pass.sequences()), dim3(static_cast<unsigned>(pass.D)),
         floats_bytes(shared_floats(pass)), context, pass);
}

std::optional<std::string> fused_pass_declines(const AxialPass& pass) {
  if (pass.D > 1024)
    return "D = " + std::to_string(pass.D) + ": a thread a channel, and a block has at most 1024";
  if (auto reason = too_much_shared(shared_floats(pass))) return reason;
  if (auto reason = copy_declines(pass.sequences() * pass.L * pass.D)) return reason;
  return too_many_blocks(pass.sequences());
}

AxialKernel fused_row_column() {
  return {"fused_row_column",
          "one block does a whole pass over a sequence, a thread a channel; columns are read in place",
          "unfused", declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
