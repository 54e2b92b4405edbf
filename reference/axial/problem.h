// The axial attention block: its inputs and outputs.
//
// A pass over sequences of tokens along one axis:
//
//     n = LayerNorm(x; weight, bias, eps)      biased variance, over D
//     [Q K V] = n · W_qkvᵀ                     head h owns columns h·d … h·d+d-1 of each, d = D / heads
//     o_h = softmax(Q_h K_hᵀ / √d) V_h         over the tokens of the sequence
//     x ← x + concat(o_h) · W_outᵀ + b_out
//
// The row pass runs along W for each (b,h); the column pass then runs along H for each (b,w) on its result.
#pragma once

#include <optional>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// Parameters of one pass, float32 in storage, in PyTorch's layout: a weight is [outputs, inputs].
struct AxialPassParameters {
  TensorView<const float, 1> norm_weight;  ///< [D]
  TensorView<const float, 1> norm_bias;    ///< [D]
  TensorView<const float, 2> qkv_weight;   ///< [3D,D], rows in the order Q, K, V; no bias
  TensorView<const float, 2> out_weight;   ///< [D,D]
  TensorView<const float, 1> out_bias;     ///< [D]
};

/// Which of the two passes run.
enum class AxialPasses { both, row, col };

/// Inputs of the block. B, H, W, D >= 1; `heads` divides D.
struct AxialProblem {
  TensorView<const float, 4> x;  ///< [B,H,W,D]
  AxialPassParameters row;       ///< the pass along W
  AxialPassParameters col;       ///< the pass along H
  Index heads = 1;
  float eps = 1e-5F;
  AxialPasses passes = AxialPasses::both;
};

/// Outputs of the block in the scalar type of the computation.
template <class Scalar>
struct AxialOutputs {
  TensorView<Scalar, 4> y;                   ///< [B,H,W,D]
  std::optional<TensorView<Scalar, 4>> row;  ///< [B,H,W,D]: the result of the row pass, when wanted
};

}  // namespace gaugeblock
