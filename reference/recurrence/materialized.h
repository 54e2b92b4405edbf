// Differs from `sequential`: every state is stored first, then contracted with its query.
#pragma once

#include <vector>

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
void materialized(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      std::vector<Matrix<Scalar>> states{load_initial_state<Scalar>(problem, b, h)};  // states[t + 1] is S_t
      for (Index t = 0; t < problem.steps(); ++t) {
        const Scalar gate(problem.gate(b, t, h));
        const Scalar beta(problem.beta(b, t, h));
        const Vector<Scalar> k = load<Scalar>(problem.k, b, t, h);
        const Vector<Scalar> v = load<Scalar>(problem.v, b, t, h);
        const Matrix<Scalar> write = (beta * k) * v.transpose();
        states.push_back(gate * states.back() + write);
      }
      for (Index t = 0; t < problem.steps(); ++t) {
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);
        store_output<Scalar>(out, b, t, h, states[t + 1].transpose() * q);
      }
      store_final_state<Scalar>(out, b, h, states.back());
    }
  }
}

}  // namespace gaugeblock::recurrence
