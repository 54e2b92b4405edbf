// What the forms share: parameters and tokens as matrices, and which tokens form a sequence.
#pragma once

#include <Eigen/Core>

#include "gaugeblock/reference/axial/problem.h"

namespace gaugeblock::axial {

template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Scalar>
using RowVector = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;

/// The parameters of one pass in the scalar type of the computation.
template <class Scalar>
struct Weights {
  RowVector<Scalar> norm_weight;  ///< [D]
  RowVector<Scalar> norm_bias;    ///< [D]
  Matrix<Scalar> qkv;             ///< [3D,D]
  Matrix<Scalar> out;             ///< [D,D]
  RowVector<Scalar> out_bias;     ///< [D]
};

template <class Scalar>
RowVector<Scalar> load(const TensorView<const float, 1>& tensor) {
  RowVector<Scalar> vector(tensor.shape[0]);
  for (Index i = 0; i < vector.size(); ++i) vector(i) = Scalar(tensor(i));
  return vector;
}

template <class Scalar>
Matrix<Scalar> load(const TensorView<const float, 2>& tensor) {
  Matrix<Scalar> matrix(tensor.shape[0], tensor.shape[1]);
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index j = 0; j < matrix.cols(); ++j) matrix(i, j) = Scalar(tensor(i, j));
  return matrix;
}

template <class Scalar>
Weights<Scalar> load(const AxialPassParameters& parameters) {
  return {load<Scalar>(parameters.norm_weight), load<Scalar>(parameters.norm_bias),
          load<Scalar>(parameters.qkv_weight), load<Scalar>(parameters.out_weight),
          load<Scalar>(parameters.out_bias)};
}

/// [B,H,W,D] as [B·H·W, D]: token (b,h,w) is row (b·H + h)·W + w.
template <class Scalar>
Matrix<Scalar> load(const TensorView<const float, 4>& tensor) {
  const auto [B, H, W, D] = tensor.shape;
  Matrix<Scalar> tokens(B * H * W, D);
  for (Index token = 0; token < tokens.rows(); ++token)
    for (Index i = 0; i < D; ++i)
      tokens(token, i) = Scalar(tensor(token / (H * W), token / W % H, token % W, i));
  return tokens;
}

template <class Scalar>
void store(const Matrix<Scalar>& tokens, const TensorView<Scalar, 4>& tensor) {
  const Index H = tensor.shape[1];
  const Index W = tensor.shape[2];
  for (Index token = 0; token < tokens.rows(); ++token)
    for (Index i = 0; i < tokens.cols(); ++i)
      tensor(token / (H * W), token / W % H, token % W, i) = tokens(token, i);
}

/// The tokens that attend to each other: rows first, first + step, … of the token matrix, `length` of them.
struct Sequence {
  Index first = 0;
  Index step = 1;
  Index length = 1;
};

/// The sequences of one pass. Row pass: B·H sequences along W. Column pass: B·W sequences along H.
class Sequences {
 public:
  Sequences(const AxialProblem& problem, bool along_rows)
      : B_(problem.x.shape[0]), H_(problem.x.shape[1]), W_(problem.x.shape[2]), along_rows_(along_rows) {}

  Index count() const { return along_rows_ ? B_ * H_ : B_ * W_; }
  Sequence operator[](Index s) const {
    if (along_rows_) return {s * W_, 1, W_};
    return {s / W_ * H_ * W_ + s % W_, W_, H_};
  }

 private:
  Index B_, H_, W_;
  bool along_rows_;
};

/// Runs the passes that the problem asks for and stores their results.
/// `pass(x, weights)` returns one sequence x, [L,D], after one pass.
template <class Scalar, class Pass>
void run_passes(const AxialProblem& problem, const AxialOutputs<Scalar>& out, const Pass& pass) {
  Matrix<Scalar> tokens = load<Scalar>(problem.x);
  const auto run = [&](const AxialPassParameters& parameters, const Sequences& sequences) {
    const Weights<Scalar> weights = load<Scalar>(parameters);
    for (Index s = 0; s < sequences.count(); ++s) {
      const auto rows = Eigen::seqN(sequences[s].first, sequences[s].length, sequences[s].step);
      const Matrix<Scalar> x = tokens(rows, Eigen::all);
      tokens(rows, Eigen::all) = pass(x, weights);
    }
  };
  if (problem.passes != AxialPasses::col) run(problem.row, Sequences(problem, true));
  if (out.row) store(tokens, *out.row);
  if (problem.passes != AxialPasses::row) run(problem.col, Sequences(problem, false));
  store(tokens, out.y);
}

}  // namespace gaugeblock::axial
