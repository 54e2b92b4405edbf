// Differs from `sequential`: an associative scan. A step is the pair (g, U), the map S -> g·S + U, and
//
//     (g1, U1) then (g2, U2)   =   (g2 g1, g2 U1 + U2)
//
// is associative, so all prefixes can be formed in a balanced tree of depth ⌈log2 T⌉.
#pragma once

#include <vector>

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

template <class Scalar>
struct AffineStep {
  Scalar gate;
  Matrix<Scalar> write;
};

/// Replaces steps[first … last-1] by the compositions of all steps from `first` up to each of them.
template <class Scalar>
void inclusive_scan(std::vector<AffineStep<Scalar>>& steps, Index first, Index last) {
  if (last - first < 2) return;
  const Index middle = first + (last - first) / 2;
  inclusive_scan(steps, first, middle);
  inclusive_scan(steps, middle, last);
  const AffineStep<Scalar>& before = steps[middle - 1];
  for (Index t = middle; t < last; ++t) {
    steps[t].write = steps[t].gate * before.write + steps[t].write;
    steps[t].gate = steps[t].gate * before.gate;
  }
}

template <class Scalar>
void scan(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      const Matrix<Scalar> initial_state = load_initial_state<Scalar>(problem, b, h);
      std::vector<AffineStep<Scalar>> steps;
      for (Index t = 0; t < problem.steps(); ++t) {
        const Scalar beta(problem.beta(b, t, h));
        const Vector<Scalar> k = load<Scalar>(problem.k, b, t, h);
        const Vector<Scalar> v = load<Scalar>(problem.v, b, t, h);
        steps.push_back({Scalar(problem.gate(b, t, h)), (beta * k) * v.transpose()});
      }
      inclusive_scan(steps, 0, problem.steps());

      Matrix<Scalar> state = initial_state;
      for (Index t = 0; t < problem.steps(); ++t) {
        state = steps[t].gate * initial_state + steps[t].write;
        const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);
        store_output<Scalar>(out, b, t, h, state.transpose() * q);
      }
      store_final_state<Scalar>(out, b, h, state);
    }
  }
}

}  // namespace gaugeblock::recurrence
