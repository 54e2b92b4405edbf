// One head at a time, one query at a time, columns read in place: nothing is stored that need not be.
//
// Of a sequence of L tokens it keeps n [L,D], K and V of one head [L,d], one row of scores [L] and the
// projected sum so far [L,D]. Sequences come straight from the strided views, and the column pass overwrites
// the row pass's result sequence by sequence.
#pragma once

#include "gaugeblock/reference/axial/unfused.h"

namespace gaugeblock::axial {

/// One sequence x, [L,D], after one pass.
template <class Scalar>
Matrix<Scalar> fused_sequence_pass(const Matrix<Scalar>& x, const Weights<Scalar>& weights,
                                   const AxialProblem& problem) {
  using std::exp;
  using std::max;
  using std::sqrt;
  const Index L = x.rows();
  const Index D = x.cols();
  const Index d = D / problem.heads;
  const Scalar scale = Scalar(1) / sqrt(Scalar(static_cast<float>(d)));
  const Matrix<Scalar> n = layer_norm<Scalar>(x, weights, Scalar(problem.eps));
  Matrix<Scalar> projected = Matrix<Scalar>::Constant(L, D, Scalar(0));
  for (Index head = 0; head < problem.heads; ++head) {
    const auto W_out = weights.out.middleCols(head * d, d);
    const Matrix<Scalar> K = n * weights.qkv.middleRows(D + head * d, d).transpose();
    const Matrix<Scalar> V = n * weights.qkv.middleRows(2 * D + head * d, d).transpose();
    for (Index query = 0; query < L; ++query) {
      const RowVector<Scalar> q = n.row(query) * weights.qkv.middleRows(head * d, d).transpose();
      RowVector<Scalar> score = q * K.transpose() * scale;
      Scalar largest = score(0);
      for (Index key = 1; key < L; ++key) largest = max(largest, score(key));
      for (Index key = 0; key < L; ++key) score(key) = exp(Scalar(score(key) - largest));
      const RowVector<Scalar> o = score * V / score.sum();
      projected.row(query) += o * W_out.transpose();
    }
  }
  return x + (projected.rowwise() + weights.out_bias);
}

/// One pass of the whole block from `in` to `out`, which may be the same tensor.
template <class Scalar, class Input>
void fused_sequence_block(const TensorView<Input, 4>& in, const TensorView<Scalar, 4>& out,
                          const AxialPassParameters& parameters, bool along_rows,
                          const AxialProblem& problem) {
  const auto [B, H, W, D] = in.shape;
  const Weights<Scalar> weights = load<Scalar>(parameters);
  const Index L = along_rows ? W : H;
  for (Index b = 0; b < B; ++b) {
    for (Index other = 0; other < (along_rows ? H : W); ++other) {
      const auto element = [&](const auto& view, Index token, Index i) -> auto& {
        return along_rows ? view(b, other, token, i) : view(b, token, other, i);
      };
      Matrix<Scalar> x(L, D);
      for (Index token = 0; token < L; ++token)
        for (Index i = 0; i < D; ++i) x(token, i) = Scalar(element(in, token, i));
      const Matrix<Scalar> y = fused_sequence_pass(x, weights, problem);
      for (Index token = 0; token < L; ++token)
        for (Index i = 0; i < D; ++i) element(out, token, i) = y(token, i);
    }
  }
}

template <class Scalar>
void fused_sequence(const AxialProblem& problem, const AxialOutputs<Scalar>& out) {
  const auto [B, H, W, D] = problem.x.shape;
  if (problem.passes == AxialPasses::col) {
    fused_sequence_block(problem.x, out.y, problem.col, false, problem);
    if (out.row) store(load<Scalar>(problem.x), *out.row);
    return;
  }
  fused_sequence_block(problem.x, out.y, problem.row, true, problem);
  if (out.row)
    for (Index b = 0; b < B; ++b)
      for (Index h = 0; h < H; ++h)
        for (Index w = 0; w < W; ++w)
          for (Index i = 0; i < D; ++i) (*out.row)(b, h, w, i) = out.y(b, h, w, i);
  if (problem.passes == AxialPasses::both) fused_sequence_block(out.y, out.y, problem.col, false, problem);
}

}  // namespace gaugeblock::axial
