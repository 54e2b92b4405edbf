// LayerNorm in one reading of x: variance = mean(x²) - mean(x)². Everything else is as in the definition.
//
// The subtraction cancels when the mean is large against the spread: the rounding errors of mean(x²) then
// exceed variance + eps, which may even come out negative. Such problems are declined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/reference/axial/unfused.h"

namespace gaugeblock::axial {

/// LayerNorm of every row of x, [L,D].
template <class Scalar>
Matrix<Scalar> layer_norm_one_pass(const Matrix<Scalar>& x, const Weights<Scalar>& weights,
                                   const Scalar& eps) {
  using std::sqrt;
  const Scalar D(static_cast<float>(x.cols()));
  Matrix<Scalar> n(x.rows(), x.cols());
  for (Index token = 0; token < x.rows(); ++token) {
    const Scalar mean = x.row(token).sum() / D;
    const Scalar mean_square = x.row(token).cwiseProduct(x.row(token)).sum() / D;
    const Scalar variance = mean_square - mean * mean;
    const Scalar scale = Scalar(1) / sqrt(Scalar(variance + eps));
    n.row(token) = ((x.row(token).array() - mean).matrix() * scale).cwiseProduct(weights.norm_weight) +
                   weights.norm_bias;
  }
  return n;
}

/// Whether float32 rounding in mean(x²) - mean(x)² may exceed half of variance + eps in some row of x.
/// The error is at most (3 D + 8) u mean(x²), u = 2^-24: D + 2 roundings in mean(x²), D + 1 in the mean,
/// which enters twice, and the square and the difference; and |mean(x)| mean|x| <= mean(x²).
inline bool one_pass_variance_cancels(const Matrix<double>& x, double eps) {
  const double D = static_cast<double>(x.cols());
  for (Index token = 0; token < x.rows(); ++token) {
    const double mean = x.row(token).sum() / D;
    const double mean_square = x.row(token).squaredNorm() / D;
    const double variance = (x.row(token).array() - mean).matrix().squaredNorm() / D;
    const double error = (3 * D + 8) * 0x1p-24 * mean_square;
    if (!(2 * error <= variance + eps)) return true;
  }
  return false;
}

/// Why the problem lies outside the domain of this form, or nothing. Decided from the inputs alone; what the
/// column pass meets after a row pass is computed in float64 for it.
inline std::optional<std::string> one_pass_variance_declines(const AxialProblem& problem) {
  const std::string reason =
      "mean(x^2) - mean(x)^2 cancels: the mean of a token is too large against its spread";
  if (one_pass_variance_cancels(load<double>(problem.x), problem.eps)) return reason;
  if (problem.passes != AxialPasses::both) return std::nullopt;

  const auto [B, H, W, D] = problem.x.shape;
  Matrix<double> row(B * H * W, D);
  AxialProblem row_pass = problem;
  row_pass.passes = AxialPasses::row;
  unfused<double>(row_pass, {contiguous_view<double, 4>(row.data(), problem.x.shape), std::nullopt});
  if (one_pass_variance_cancels(row, problem.eps)) return reason + " after the row pass";
  return std::nullopt;
}

template <class Scalar>
void one_pass_variance(const AxialProblem& problem, const AxialOutputs<Scalar>& out) {
  run_passes(problem, out, [&](const auto& x, const auto& weights) {
    return pass(x, weights, problem, layer_norm_one_pass<Scalar>, softmax_attention<Scalar>);
  });
}

}  // namespace gaugeblock::axial
