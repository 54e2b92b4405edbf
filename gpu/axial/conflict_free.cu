// Differs from `fused_row_column`: a layout of shared memory in which no request of a warp touches two words
// of one bank. A warp's 32 lanes get their words in one go if these lie in 32 different banks (address mod
// 32), or are the same word. Three accesses of `fused_row_column` are not so; this is what mends them:
//
//     a lane per token, channel i of each:    l·D + i      32 lanes, one bank, when D is a multiple of 32
//                                          →  l·pitch + i  with an odd pitch: 32 lanes, 32 banks
//     a lane per key, channel i of each:      the same; and a warp whose lanes have several heads mixes them
//                                          →  a warp works on one head at a time, all on one word of q
//     a lane per channel, its head's score:   head·L + key, one bank for several heads, when L is even
//                                          →  head·score_pitch + key with an odd pitch
//
// All else is a lane per channel side by side, or one word for all. The same arithmetic. A block has whole
// warps; threads from D on help with the scores.
#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/axial/fused_row_column.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

/// The next odd number: a unit modulo 32, so that its multiples by 0 … 31 are 32 different banks.
__host__ __device__ constexpr Index odd_pitch(Index count) {
  return count | 1;
}

__global__ void __launch_bounds__(1024) conflict_free_kernel(AxialPass pass) {
  const PassTensors tensors(pass);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D), heads = static_cast<int>(pass.heads);
  const int pitch = static_cast<int>(odd_pitch(D)), score_pitch = static_cast<int>(odd_pitch(L));
  const int d = D / heads, c = static_cast<int>(threadIdx.x), head = c / d;
  const int threads = static_cast<int>(blockDim.x);
  const bool has_channel = c < D;
  const auto n = shared.slice(0, L * pitch);  // x, then n, then o
  const auto q = shared.slice(L * pitch, L * pitch);
  const auto k = shared.slice(2 * L * pitch, L * pitch);
  const auto v = shared.slice(3 * L * pitch, L * pitch);
  const auto score = shared.slice(4 * L * pitch, heads * score_pitch);
  const Index b = blockIdx.x / pass.others, other = blockIdx.x % pass.others;

  if (has_channel)
    for (int token = 0; token < L; ++token) {
      const float x = tensors.x[pass.x.at(b, other, token, c)];
      n[token * pitch + c] = x;
    }
  __syncthreads();  // a token has all its channels before it is normalised
  for (int token = c; token < L; token += threads) normalize_token(n + token * pitch, pass, tensors);
  __syncthreads();  // every token is normalised before it is projected

  if (has_channel)
    for (int token = 0; token < L; ++token) {
      float q_sum = 0, k_sum = 0, v_sum = 0;
      for (int i = 0; i < D; ++i) {
        const float x = n[token * pitch + i];
        const float q_weight = tensors.qkv_weight[pass.qkv_weight.at(c, i)];
        const float k_weight = tensors.qkv_weight[pass.qkv_weight.at(D + c, i)];
        const float v_weight = tensors.qkv_weight[pass.qkv_weight.at(2 * D + c, i)];
        q_sum = fmaf(x, q_weight, q_sum);
        k_sum = fmaf(x, k_weight, k_sum);
        v_sum = fmaf(x, v_weight, v_sum);
      }
      q[token * pitch + c] = q_sum;
      k[token * pitch + c] = k_sum;
      v[token * pitch + c] = v_sum;
    }
  __syncthreads();  // all of q, k and v are there before they are used; n is read before o overwrites it

  const auto& o = n;
  const float scale = logit_scale(d);
  const int lane = c % 32, warp = c / 32, warps = threads / 32, key_groups = (L + 31) / 32;
  for (int query = 0; query < L; ++query) {
    for (int at = warp; at < heads * key_groups; at += warps) {
      const int of_head = at % heads, key = at / heads * 32 + lane;
      if (key < L)
        score[of_head * score_pitch + key] =
            logit(q + (query * pitch + of_head * d), k + (key * pitch + of_head * d), d, scale);
    }
    __syncthreads();  // all scores of the query are there before they are weighed
    if (has_channel) {
      float largest = -INFINITY;
      for (int key = 0; key < L; ++key) {
        const float z = score[head * score_pitch + key];
        largest = fmaxf(largest, z);
      }
      float sum = 0, weighted = 0;
      for (int key = 0; key < L; ++key) {
        const float z = score[head * score_pitch + key];
        const float v_key = v[key * pitch + c];
        const float weight = expf(z - largest);
        sum += weight;
        weighted = fmaf(weight, v_key, weighted);
      }
      o[query * pitch + c] = weighted / sum;
    }
    __syncthreads();  // all scores are read before the next query's overwrite them; after the last: o is
                      // there
  }

  if (!has_channel) return;
  for (int token = 0; token < L; ++token) {
    float sum = 0;
    for (int i = 0; i < D; ++i) {
      const float o_i = o[token * pitch + i];
      const float weight = tensors.out_weight[pass.out_weight.at(c, i)];
      sum = fmaf(o_i, weight, sum);
    }
    const float bias = tensors.out_bias[pass.out_bias.at(c)];
    const float x = tensors.x[pass.x.at(b, other, token, c)];
    tensors.y[pass.y.at(b, other, token, c)] = x + (sum + bias);
  }
}

Index shared_floats(const AxialPass& pass) {
  return 4 * pass.L * odd_pitch(pass.D) + pass.heads * odd_pitch(pass.L);
}

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments, [](const AxialPass& pass) {
    if (auto reason = fused_pass_declines(pass)) return reason;
    return too_much_shared(shared_floats(pass));
  });
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) {
    const TransposedWeights weights(pass, context);
    launch(GAUGEBLOCK_KERNEL(conflict_free_kernel), grid_of(pass.sequences()),
           dim3(static_cast<unsigned>(ceil_div(pass.D, 32) * 32)), floats_bytes(shared_floats(pass)), context,
           weights.pass());
  });
}

}  // namespace

AxialKernel conflict_free() {
  return {"conflict_free", "odd pitches and one head a warp: no bank conflict in any access to shared memory",
          "unfused", declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
