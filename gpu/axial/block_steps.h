// Steps of a pass that kernels with a sequence in one block share. Included by kernel sources only.
//
// All threads of the block take part; there is no barrier inside. L·D floats in shared memory hold x, then n,
// then o; token l's channels begin at l·pitch.
#pragma once

#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// The sequence of a block.
struct BlockSequence {
  Index b, other;
};

__device__ inline BlockSequence block_sequence(const AxialPass& pass) {
  return {blockIdx.x / pass.others, blockIdx.x % pass.others};
}

/// Threads of a block whose work is over (token, channel) and (head, token): whole warps, enough for every
/// channel or every (head, token), at most 256, as the loops take what is left over.
constexpr int max_block_threads = 256;

inline dim3 block_of(const AxialPass& pass) {
  const Index work = pass.D > pass.heads * pass.L ? pass.D : pass.heads * pass.L;
  const Index threads = ceil_div(work, 32) * 32;
  return dim3(static_cast<unsigned>(threads < max_block_threads ? threads : max_block_threads));
}

/// Why a block cannot take a sequence of the pass in so much shared memory, or nothing.
inline std::optional<std::string> block_pass_declines(const AxialPass& pass, Index shared_floats) {
  if (auto reason = too_much_shared(shared_floats)) return reason;
  if (auto reason = copy_declines(pass.sequences() * pass.L * pass.D)) return reason;
  return too_many_blocks(pass.sequences());
}

/// n = (x - mean) / √(variance + eps) · weight + bias of one token, in place, by one thread. The variance is
/// the mean of squared differences, so a row of equal values gives 0 and not something negative.
__device__ inline void normalize_token(const simt::Shared<float>& row, const AxialPass& pass,
                                       const PassTensors& tensors) {
  const int D = static_cast<int>(pass.D);
  float sum = 0;
  for (int i = 0; i < D; ++i) {
    const float x = row[i];
    sum += x;
  }
  const float mean = sum / static_cast<float>(D);
  float squares = 0;
  for (int i = 0; i < D; ++i) {
    const float x = row[i];
    const float centered = x - mean;
    squares = fmaf(centered, centered, squares);
  }
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(D) + pass.eps);
  for (int i = 0; i < D; ++i) {
    const float x = row[i];
    const float weight = tensors.norm_weight[pass.norm_weight.at(i)];
    const float bias = tensors.norm_bias[pass.norm_bias.at(i)];
    row[i] = fmaf((x - mean) * scale, weight, bias);
  }
}

/// 1 / √d.
__device__ inline float logit_scale(int d) {
  return 1.0F / sqrtf(static_cast<float>(d));
}

/// Loads the sequence: rows[l,c] = x[l,c], a thread an element.
__device__ inline void load_sequence(const AxialPass& pass, const PassTensors& tensors,
                                     const BlockSequence& sequence, const simt::Shared<float>& rows) {
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D);
  for (int at = static_cast<int>(threadIdx.x); at < L * D; at += static_cast<int>(blockDim.x)) {
    const float x = tensors.x[pass.x.at(sequence.b, sequence.other, at / D, at % D)];
    rows[at] = x;
  }
}

/// rows ← LayerNorm of every row, a thread a token.
__device__ inline void normalize_sequence(const AxialPass& pass, const PassTensors& tensors,
                                          const simt::Shared<float>& rows) {
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D);
  for (int token = static_cast<int>(threadIdx.x); token < L; token += static_cast<int>(blockDim.x))
    normalize_token(rows + token * D, pass, tensors);
}

/// q, k, v [L,D] = n · W_qkvᵀ, a thread makes the three of one token and channel.
__device__ inline void project_qkv(const AxialPass& pass, const PassTensors& tensors,
                                   const simt::Shared<float>& n, const simt::Shared<float>& q,
                                   const simt::Shared<float>& k, const simt::Shared<float>& v) {
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D);
  for (int at = static_cast<int>(threadIdx.x); at < L * D; at += static_cast<int>(blockDim.x)) {
    const int token = at / D, c = at % D;
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
    q[at] = q_sum;
    k[at] = k_sum;
    v[at] = v_sum;
  }
}

/// z = q · k / √d of one head: the d channels that q and k begin with.
__device__ inline float logit(const simt::Shared<float>& q, const simt::Shared<float>& k, int d,
                              float scale) {
  float sum = 0;
  for (int i = 0; i < d; ++i) {
    const float q_i = q[i];
    const float k_i = k[i];
    sum = fmaf(q_i, k_i, sum);
  }
  return sum * scale;
}

/// y = x + (o · W_outᵀ + b_out), a thread an element. Reads the x that the same thread overwrites when y is
/// x.
__device__ inline void project_out(const AxialPass& pass, const PassTensors& tensors,
                                   const BlockSequence& sequence, const simt::Shared<float>& o) {
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D);
  for (int at = static_cast<int>(threadIdx.x); at < L * D; at += static_cast<int>(blockDim.x)) {
    const int token = at / D, c = at % D;
    float sum = 0;
    for (int i = 0; i < D; ++i) {
      const float o_i = o[token * D + i];
      const float weight = tensors.out_weight[pass.out_weight.at(c, i)];
      sum = fmaf(o_i, weight, sum);
    }
    const float bias = tensors.out_bias[pass.out_bias.at(c)];
    const float x = tensors.x[pass.x.at(sequence.b, sequence.other, token, c)];
    tensors.y[pass.y.at(sequence.b, sequence.other, token, c)] = x + (sum + bias);
  }
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
