// Body of run_axial_form, for the files that instantiate it.
#pragma once

#include <stdexcept>

#include "gaugeblock/reference/axial/fused_sequence.h"
#include "gaugeblock/reference/axial/one_pass_variance.h"
#include "gaugeblock/reference/axial/online_softmax.h"
#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/bounds/axial_forms.h"

namespace gaugeblock {

template <class Scalar>
void run_axial_form(const std::string& form, const AxialProblem& problem, const AxialOutputs<Scalar>& out) {
  if (form == "unfused") return axial::unfused(problem, out);
  if (form == "online_softmax") return axial::online_softmax(problem, out);
  if (form == "one_pass_variance") return axial::one_pass_variance(problem, out);
  if (form == "fused_sequence") return axial::fused_sequence(problem, out);
  throw std::logic_error("no reference form of the axial block is called '" + form + "'");
}

}  // namespace gaugeblock
