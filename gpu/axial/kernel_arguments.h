// What an axial kernel is given: device views of every tensor. No CUDA and no Eigen, so that any host code
// can fill it in.
//
//     n = LayerNorm(x; weight, bias, eps)      [Q K V] = n · W_qkvᵀ      o_h = softmax(Q_h K_hᵀ / √d) V_h
//     x ← x + concat(o_h) · W_outᵀ + b_out     along W for each (b,h), then along H for each (b,w)
#pragma once

#include <optional>

#include "gaugeblock/reference/axial/problem.h"

namespace gaugeblock::gpu {

/// Device pointers with shapes and strides in elements. B, H, W, D >= 1; `heads` divides D. Inputs may have
/// strides of 0; outputs overlap nothing, neither themselves nor inputs.
struct AxialArguments {
  TensorView<const float, 4> x;  ///< [B,H,W,D]
  AxialPassParameters row;       ///< not looked at when passes is col
  AxialPassParameters col;       ///< not looked at when passes is row
  Index heads = 1;
  float eps = 1e-5F;
  AxialPasses passes = AxialPasses::both;
  TensorView<float, 4> y;  ///< [B,H,W,D]
  std::optional<TensorView<float, 4>>
      row_result;  ///< [B,H,W,D]: after the row pass, when wanted; x if there is none

  Index batches() const { return x.shape[0]; }
  Index height() const { return x.shape[1]; }
  Index width() const { return x.shape[2]; }
  Index channels() const { return x.shape[3]; }
};

/// From the harness's own structures (AxialProblem, AxialOutputs<float>), when their pointers are a device's.
template <class Problem, class Outputs>
AxialArguments axial_arguments(const Problem& problem, const Outputs& outputs) {
  return {problem.x,   problem.row,    problem.col, problem.heads,
          problem.eps, problem.passes, outputs.y,   outputs.row};
}

}  // namespace gaugeblock::gpu
