// Differs from `sequential`: the closed form. The gates are taken out of the state as prefix products.
//
//     P_t = Π_{r≤t} gate_r        W_t = S_0 + Σ_{s≤t} (beta_s / P_s) k_s v_sᵀ        y_t = P_t · q_tᵀ W_t
//
// It fails by range, not by precision: precondition !prefix_product_declines(problem).
#pragma once

#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
void prefix_product(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      Matrix<Scalar> w = load_initial_state<Scalar>(problem, b, h);
      Scalar p(1);
      for (Index t = 0; t < problem.steps(); ++t) {
        p *= Scalar(problem.gate(b, t, h));
        const Scalar beta(problem.beta(b, t, h));
        const Vector<Scalar> k = load<Scalar>(problem.k, b, t, h);
        const Vector<Scalar> v = load<Scalar>(problem.v, b, t, h);
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);

        w += ((beta / p) * k) * v.transpose();
        const Vector<Scalar> contracted = w.transpose() * q;
        store_output<Scalar>(out, b, t, h, p * contracted);
      }
      store_final_state<Scalar>(out, b, h, p * w);
    }
  }
}

}  // namespace gaugeblock::recurrence
