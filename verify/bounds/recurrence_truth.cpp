#include <cfloat>
#include <cmath>

#include "gaugeblock/reference/recurrence/sequential.h"
#include "gaugeblock/verify/bounds/high_precision.h"
#include "gaugeblock/verify/bounds/recurrence_forms.h"

namespace gaugeblock {
namespace {

template <class Scalar>
RecurrenceTruth truth_in(const RecurrenceProblem& problem, double roundoff) {
  RecurrenceBuffers<Scalar> buffers(problem);
  recurrence::sequential(problem, buffers.view);
  RecurrenceTruth truth;
  truth.roundoff = roundoff;
  for (const Scalar& value : buffers.y) truth.y.push_back(static_cast<double>(value));
  for (const Scalar& value : buffers.final_state) truth.final_state.push_back(static_cast<double>(value));
  return truth;
}

}  // namespace

RecurrenceTruth recurrence_truth(const RecurrenceProblem& problem, bool high_precision) {
  return high_precision ? truth_in<HighPrecision>(problem, high_precision_roundoff)
                        : truth_in<long double>(problem, std::ldexp(1.0, -LDBL_MANT_DIG));
}

}  // namespace gaugeblock
