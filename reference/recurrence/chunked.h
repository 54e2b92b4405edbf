// Differs from `sequential` and `masked_attention`: both at once. The state is carried from chunk to chunk,
// masked attention works inside a chunk. Any chunk size, the last chunk may be ragged.
#pragma once

#include <algorithm>

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

inline constexpr Index default_chunk = 16;

template <class Scalar>
void chunked(const RecurrenceProblem& problem, const RecurrenceOutputs<Scalar>& out,
             Index chunk = default_chunk) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      Matrix<Scalar> state = load_initial_state<Scalar>(problem, b, h);
      for (Index start = 0; start < problem.steps(); start += chunk) {
        const Index end = std::min(start + chunk, problem.steps());

        for (Index t = start; t < end; ++t) {
          const Vector<Scalar> q = load<Scalar>(problem.q, b, t, h);
          Vector<Scalar> y = Vector<Scalar>::Constant(problem.value_size(), Scalar(0));
          Scalar decay(1);  // Π_{r=s+1..t} gate_r
          for (Index s = t; s >= start; --s) {
            const Scalar beta(problem.beta(b, s, h));
            const Scalar score = (q.transpose() * load<Scalar>(problem.k, b, s, h)).value();
            y += (decay * beta * score) * load<Scalar>(problem.v, b, s, h);
            decay *= Scalar(problem.gate(b, s, h));
          }
          const Vector<Scalar> from_state = state.transpose() * q;
          y += decay * from_state;
          store_output<Scalar>(out, b, t, h, y);
        }

        Matrix<Scalar> writes = Matrix<Scalar>::Constant(state.rows(), state.cols(), Scalar(0));
        Scalar decay(1);  // Π_{r=s+1..end-1} gate_r
        for (Index s = end - 1; s >= start; --s) {
          const Scalar beta(problem.beta(b, s, h));
          writes += (decay * beta * load<Scalar>(problem.k, b, s, h)) *
                    load<Scalar>(problem.v, b, s, h).transpose();
          decay *= Scalar(problem.gate(b, s, h));
        }
        state = decay * state + writes;
      }
      store_final_state<Scalar>(out, b, h, state);
    }
  }
}

}  // namespace gaugeblock::recurrence
