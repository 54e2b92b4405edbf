// The proved bound of the axial block: one pass over the tokens in float64.
#pragma once

#include <vector>

#include "gaugeblock/reference/axial/passes.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Bounds on |computed - exact| for every element in C order; infinity where there is none.
struct AxialBound {
  std::vector<double> row;  ///< [B,H,W,D] after the row pass; empty when that does not run
  std::vector<double> y;    ///< [B,H,W,D]
  /// [B,H,W]: whether rounding may, by the bound, move a softmax that the token depends on to any of its
  /// values. Its error then is no sum of many small ones, and a few runs say little about it.
  std::vector<bool> row_unsteady, y_unsteady;
};

/// Throws std::logic_error for an arithmetic whose form is not known.
AxialBound axial_bound(const AxialProblem& problem, const Arithmetic& arithmetic);

// Bounds of single stages on inputs that are exact, of which the block's is composed: how sharp each claim is
// shows here. Nothing may overflow.

/// LayerNorm of every row of x, [L,D] (claims axial.layer_norm.two_pass, axial.layer_norm.one_pass).
axial::Matrix<double> layer_norm_bound(const axial::Matrix<double>& x, const axial::Weights<double>& weights,
                                       double eps, const Arithmetic& arithmetic);

/// softmax(Q Kᵀ / √d) V of one head: Q, K, V [L,d] (claims axial.attention.two_pass, axial.attention.online).
axial::Matrix<double> attention_bound(const axial::Matrix<double>& Q, const axial::Matrix<double>& K,
                                      const axial::Matrix<double>& V, const Arithmetic& arithmetic);

}  // namespace gaugeblock
