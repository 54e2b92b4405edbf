// The definition: one step after the other.
//
//     S_t = gate_t · S_{t-1} + beta_t · k_t v_tᵀ        y_t = q_tᵀ S_t
#pragma once

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
void sequential(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      Matrix<Scalar> state = load_initial_state<Scalar>(problem, b, h);  // [K,V]
      for (Index t = 0; t < problem.steps(); ++t) {
        const Scalar gate(problem.gate(b, t, h));
        const Scalar beta(problem.beta(b, t, h));
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);
        const Vector<Scalar> k = load<Scalar>(problem.k, b, t, h);
        const Vector<Scalar> v = load<Scalar>(problem.v, b, t, h);

        const Matrix<Scalar> write = (beta * k) * v.transpose();
        state = gate * state + write;
        store_output<Scalar>(out, b, t, h, state.transpose() * q);
      }
      store_final_state<Scalar>(out, b, h, state);
    }
  }
}

}  // namespace gaugeblock::recurrence
