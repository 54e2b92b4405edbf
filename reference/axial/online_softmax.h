// Softmax without stored scores: a running maximum, and the sums so far rescaled whenever it grows.
//
//     m' = max(m, z_j)     l ← l · exp(m - m') + exp(z_j - m')     o ← o · exp(m - m') + exp(z_j - m') · v_j
//
// and o / l after the last key. Everything else is as in the definition.
#pragma once

#include "gaugeblock/reference/axial/unfused.h"

namespace gaugeblock::axial {

/// softmax(Q Kᵀ / √d) V of one head: Q, K, V [L,d].
template <class Scalar>
Matrix<Scalar> online_attention(const Matrix<Scalar>& Q, const Matrix<Scalar>& K, const Matrix<Scalar>& V) {
  using std::exp;
  using std::max;
  using std::sqrt;
  const Scalar scale = Scalar(1) / sqrt(Scalar(static_cast<float>(Q.cols())));
  Matrix<Scalar> o(Q.rows(), Q.cols());
  for (Index query = 0; query < Q.rows(); ++query) {
    Scalar largest = Q.row(query).dot(K.row(0)) * scale;
    Scalar sum(1);
    o.row(query) = V.row(0);
    for (Index key = 1; key < K.rows(); ++key) {
      const Scalar logit = Q.row(query).dot(K.row(key)) * scale;
      const Scalar larger = max(largest, logit);
      const Scalar shrink = exp(Scalar(largest - larger));
      const Scalar weight = exp(Scalar(logit - larger));
      sum = sum * shrink + weight;
      o.row(query) = o.row(query) * shrink + weight * V.row(key);
      largest = larger;
    }
    o.row(query) /= sum;
  }
  return o;
}

template <class Scalar>
void online_softmax(const AxialProblem& problem, const AxialOutputs<Scalar>& out) {
  run_passes(problem, out, [&](const auto& x, const auto& weights) {
    return pass(x, weights, problem, layer_norm<Scalar>, online_attention<Scalar>);
  });
}

}  // namespace gaugeblock::axial
