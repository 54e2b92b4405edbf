// Differs from `sequential`: no state at all. Every output looks back over all steps, weighted by decays.
//
//     y_t = Σ_{s≤t} (Π_{r=s+1..t} gate_r) beta_s (q_t·k_s) v_s  +  (Π_{r≤t} gate_r) q_tᵀ S_0
//
// The decays are products of the gates themselves: no division, no logarithm, so any gate is legal.
#pragma once

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
void masked_attention(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      const Matrix<Scalar> initial_state = load_initial_state<Scalar>(problem, b, h);

      for (Index t = 0; t < problem.steps(); ++t) {
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);
        Vector<Scalar> y = Vector<Scalar>::Constant(problem.value_size(), Scalar(0));
        Scalar decay(1);  // Π_{r=s+1..t} gate_r
        for (Index s = t; s >= 0; --s) {
          const Scalar beta(problem.beta(b, s, h));
          const Scalar score = (q.transpose() * load<Scalar>(problem.k, b, s, h)).value();
          y += (decay * beta * score) * load<Scalar>(problem.v, b, s, h);
          decay *= Scalar(problem.gate(b, s, h));
        }
        const Vector<Scalar> from_initial_state = initial_state.transpose() * q;
        if (problem.initial_state) y += decay * from_initial_state;
        store_output<Scalar>(out, b, t, h, y);
      }

      Matrix<Scalar> state = Matrix<Scalar>::Constant(problem.key_size(), problem.value_size(), Scalar(0));
      Scalar decay(1);  // Π_{r=s+1..T-1} gate_r
      for (Index s = problem.steps() - 1; s >= 0; --s) {
        const Scalar beta(problem.beta(b, s, h));
        state +=
            (decay * beta * load<Scalar>(problem.k, b, s, h)) * load<Scalar>(problem.v, b, s, h).transpose();
        decay *= Scalar(problem.gate(b, s, h));
      }
      if (problem.initial_state) state += decay * initial_state;
      store_final_state<Scalar>(out, b, h, state);
    }
  }
}

}  // namespace gaugeblock::recurrence
