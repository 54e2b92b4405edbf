// Differs from `prefix_product`: restarted before P leaves its range, so every gate is legal, zero included.
#pragma once

#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
void prefix_product_segmented(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      Matrix<Scalar> w = load_initial_state<Scalar>(problem, b, h);
      Scalar p(1);
      PrefixSegments segments(problem, b, h);
      for (Index t = 0; t < problem.steps(); ++t) {
        const Scalar gate(problem.gate(b, t, h));
        const Scalar beta(problem.beta(b, t, h));
        const Vector<Scalar> k = load<Scalar>(problem.k, b, t, h);
        const Vector<Scalar> v = load<Scalar>(problem.v, b, t, h);
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);

        const PrefixSegments::Step step = segments.advance(t);
        if (step != PrefixSegments::Step::extend) {
          w = p * w;
          p = Scalar(1);
        }
        if (step == PrefixSegments::Step::restart_and_define) {
          const Matrix<Scalar> write = (beta * k) * v.transpose();
          w = gate * w + write;
        } else {
          p *= gate;
          w += ((beta / p) * k) * v.transpose();
        }
        const Vector<Scalar> contracted = w.transpose() * q;
        store_output<Scalar>(out, b, t, h, p * contracted);
      }
      store_final_state<Scalar>(out, b, h, p * w);
    }
  }
}

}  // namespace gaugeblock::recurrence
