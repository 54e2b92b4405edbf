// The scalar-gated linear recurrence: its inputs and outputs.
//
//     S_t = gate_t · S_{t-1} + beta_t · k_t v_tᵀ        y_t = q_tᵀ S_t        t = 0 … T-1
//
// for every batch b and head h by itself. `gate` and `beta` are plain multipliers: no sigmoid, no logarithm.
#pragma once

#include <Eigen/Core>
#include <optional>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// Inputs of the recurrence, float32 in storage. B, H, K, V >= 1; T >= 0; K and V need not be equal.
struct RecurrenceProblem {
  TensorView<const float, 4> q;                             ///< [B,T,H,K]
  TensorView<const float, 4> k;                             ///< [B,T,H,K]
  TensorView<const float, 4> v;                             ///< [B,T,H,V]
  TensorView<const float, 3> gate;                          ///< [B,T,H]
  TensorView<const float, 3> beta;                          ///< [B,T,H]
  std::optional<TensorView<const float, 4>> initial_state;  ///< [B,H,K,V]; zero when absent

  Index batches() const { return v.shape[0]; }
  Index steps() const { return v.shape[1]; }
  Index heads() const { return v.shape[2]; }
  Index key_size() const { return q.shape[3]; }
  Index value_size() const { return v.shape[3]; }
};

/// Outputs of the recurrence in the scalar type of the computation.
template <class Scalar>
struct RecurrenceOutputs {
  TensorView<Scalar, 4> y;  ///< [B,T,H,V]
  TensorView<Scalar, 4>
      final_state;  ///< [B,H,K,V]: the state after the last step; the initial state when T = 0
};

namespace recurrence {

template <class Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

/// q, k or v of one step: `tensor`[b,t,h,:].
template <class Scalar>
Vector<Scalar> load(const TensorView<const float, 4>& tensor, Index b, Index t, Index h) {
  Vector<Scalar> vector(tensor.shape[3]);
  for (Index i = 0; i < vector.size(); ++i) vector(i) = Scalar(tensor(b, t, h, i));
  return vector;
}

/// The state [K,V] of (b,h) before the first step.
template <class Scalar>
Matrix<Scalar> load_initial_state(const RecurrenceProblem& problem, Index b, Index h) {
  Matrix<Scalar> state(problem.key_size(), problem.value_size());
  for (Index i = 0; i < state.rows(); ++i)
    for (Index j = 0; j < state.cols(); ++j)
      state(i, j) = problem.initial_state ? Scalar((*problem.initial_state)(b, h, i, j)) : Scalar(0);
  return state;
}

template <class Scalar>
void store_output(const RecurrenceOutputs<Scalar>& out, Index b, Index t, Index h, const Vector<Scalar>& y) {
  for (Index j = 0; j < y.size(); ++j) out.y(b, t, h, j) = y(j);
}

template <class Scalar>
void store_final_state(const RecurrenceOutputs<Scalar>& out, Index b, Index h, const Matrix<Scalar>& state) {
  for (Index i = 0; i < state.rows(); ++i)
    for (Index j = 0; j < state.cols(); ++j) out.final_state(b, h, i, j) = state(i, j);
}

}  // namespace recurrence
}  // namespace gaugeblock
