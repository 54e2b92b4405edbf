// The reference forms of the recurrence in the scalar types of the oracle, each compiled once.
#pragma once

#include <vector>

#include "gaugeblock/reference/recurrence/problem.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Outputs in any scalar type, in C order.
template <class Scalar>
struct RecurrenceBuffers {
  std::vector<Scalar> y;
  std::vector<Scalar> final_state;
  RecurrenceOutputs<Scalar> view;

  explicit RecurrenceBuffers(const RecurrenceProblem& p)
      : y(p.batches() * p.steps() * p.heads() * p.value_size()),
        final_state(p.batches() * p.heads() * p.key_size() * p.value_size()) {
    view.y = contiguous_view<Scalar, 4>(y.data(), {p.batches(), p.steps(), p.heads(), p.value_size()});
    view.final_state = contiguous_view<Scalar, 4>(final_state.data(),
                                                  {p.batches(), p.heads(), p.key_size(), p.value_size()});
  }
};

/// Runs the form the arithmetic names. Defined for float, FusedFloat and MonteCarlo.
/// Throws std::logic_error when no form has that name.
template <class Scalar>
void run_recurrence_form(const Arithmetic& arithmetic, const RecurrenceProblem& problem,
                         const RecurrenceOutputs<Scalar>& out);

/// The true outputs, rounded to float64, and the unit roundoff they were computed with.
struct RecurrenceTruth {
  std::vector<double> y;
  std::vector<double> final_state;
  double roundoff = 0;
};

/// By the definition, in long double or in at least 160 bits.
RecurrenceTruth recurrence_truth(const RecurrenceProblem& problem, bool high_precision);

}  // namespace gaugeblock
