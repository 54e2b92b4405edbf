// The definition: sequence by sequence, whole matrices, one formula after the other.
//
//     n = LayerNorm(x)     [Q K V] = n · W_qkvᵀ     o_h = softmax(Q_h K_hᵀ / √d) V_h
//     x ← x + concat(o_h) · W_outᵀ + b_out
#pragma once

#include <cmath>

#include "gaugeblock/reference/axial/passes.h"

namespace gaugeblock::axial {

/// Every row of x, [L,D], by itself: (x - mean) / √(variance + eps) · weight + bias, variance over D.
template <class Scalar>
Matrix<Scalar> layer_norm(const Matrix<Scalar>& x, const Weights<Scalar>& weights, const Scalar& eps) {
  using std::sqrt;
  const Scalar D(static_cast<float>(x.cols()));
  Matrix<Scalar> n(x.rows(), x.cols());
  for (Index token = 0; token < x.rows(); ++token) {
    const Scalar mean = x.row(token).sum() / D;
    const RowVector<Scalar> centered = (x.row(token).array() - mean).matrix();
    const Scalar variance = centered.cwiseProduct(centered).sum() / D;
    const Scalar scale = Scalar(1) / sqrt(Scalar(variance + eps));
    n.row(token) = (centered * scale).cwiseProduct(weights.norm_weight) + weights.norm_bias;
  }
  return n;
}

/// softmax(Q Kᵀ / √d) V of one head: Q, K, V [L,d].
template <class Scalar>
Matrix<Scalar> softmax_attention(const Matrix<Scalar>& Q, const Matrix<Scalar>& K, const Matrix<Scalar>& V) {
  using std::exp;
  using std::max;
  using std::sqrt;
  const Scalar scale = Scalar(1) / sqrt(Scalar(static_cast<float>(Q.cols())));
  Matrix<Scalar> weight = Q * K.transpose() * scale;
  RowVector<Scalar> sum(weight.rows());
  for (Index query = 0; query < weight.rows(); ++query) {
    Scalar largest = weight(query, 0);
    for (Index key = 1; key < weight.cols(); ++key) largest = max(largest, weight(query, key));
    for (Index key = 0; key < weight.cols(); ++key)
      weight(query, key) = exp(Scalar(weight(query, key) - largest));
    sum(query) = weight.row(query).sum();
  }
  Matrix<Scalar> o = weight * V;
  for (Index query = 0; query < o.rows(); ++query) o.row(query) /= sum(query);
  return o;
}

/// One sequence x, [L,D], after one pass; `norm` and `attention` are the two steps that other forms replace.
template <class Scalar, class Norm, class Attention>
Matrix<Scalar> pass(const Matrix<Scalar>& x, const Weights<Scalar>& weights, const AxialProblem& problem,
                    const Norm& norm, const Attention& attention) {
  const Index D = x.cols();
  const Index d = D / problem.heads;
  const Matrix<Scalar> n = norm(x, weights, Scalar(problem.eps));
  const Matrix<Scalar> qkv = n * weights.qkv.transpose();
  Matrix<Scalar> o(x.rows(), D);
  for (Index head = 0; head < problem.heads; ++head) {
    const Matrix<Scalar> Q = qkv.middleCols(head * d, d);
    const Matrix<Scalar> K = qkv.middleCols(D + head * d, d);
    const Matrix<Scalar> V = qkv.middleCols(2 * D + head * d, d);
    o.middleCols(head * d, d) = attention(Q, K, V);
  }
  const Matrix<Scalar> projected = (o * weights.out.transpose()).rowwise() + weights.out_bias;
  return x + projected;
}

template <class Scalar>
void unfused(const AxialProblem& problem, const AxialOutputs<Scalar>& out) {
  run_passes(problem, out, [&](const auto& x, const auto& weights) {
    return pass(x, weights, problem, layer_norm<Scalar>, softmax_attention<Scalar>);
  });
}

}  // namespace gaugeblock::axial
