// The proved bound of the axial block: one pass over the tokens in float64.
#pragma once

#include <vector>

#include "gaugeblock/reference/axial/problem.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Bounds on |computed - exact| for every element in C order; infinity where there is none.
struct AxialBound {
  std::vector<double> row;  ///< [B,H,W,D] after the row pass; empty when that does not run
  std::vector<double> y;    ///< [B,H,W,D]
};

/// Throws std::logic_error for an arithmetic whose form is not known.
AxialBound axial_bound(const AxialProblem& problem, const Arithmetic& arithmetic);

}  // namespace gaugeblock
