// Body of run_recurrence_form, for the files that instantiate it.
#pragma once

#include <stdexcept>

#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/reference/recurrence/masked_attention.h"
#include "gaugeblock/reference/recurrence/prefix_product.h"
#include "gaugeblock/reference/recurrence/prefix_product_segmented.h"
#include "gaugeblock/reference/recurrence/scan.h"
#include "gaugeblock/reference/recurrence/sequential.h"
#include "gaugeblock/verify/bounds/recurrence_forms.h"

namespace gaugeblock {

template <class Scalar>
void run_recurrence_form(const Arithmetic& arithmetic, const RecurrenceProblem& problem,
                         const RecurrenceOutputs<Scalar>& out) {
  if (arithmetic.form == "sequential") return recurrence::sequential(problem, out);
  if (arithmetic.form == "masked_attention") return recurrence::masked_attention(problem, out);
  if (arithmetic.form == "chunked") return recurrence::chunked(problem, out, arithmetic.chunk);
  if (arithmetic.form == "scan") return recurrence::scan(problem, out);
  if (arithmetic.form == "prefix_product") return recurrence::prefix_product(problem, out);
  if (arithmetic.form == "prefix_product_segmented")
    return recurrence::prefix_product_segmented(problem, out);
  throw std::logic_error("no reference form of the recurrence is called '" + arithmetic.form + "'");
}

}  // namespace gaugeblock
