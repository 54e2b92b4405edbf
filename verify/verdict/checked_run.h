// One run of a variant with everything that must be true of every run.
#pragma once

#include <string>

#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

struct CheckedRun {
  Outputs outputs;
  std::string broken;    ///< the run property that does not hold, in words; empty when all hold
  std::string declined;  ///< why the variant declined after a look at the values; empty when it did not
  std::string error;     ///< what the variant threw; empty when it did not
};

/// Runs the variant on outputs prefilled with the marked NaN and checks that every element was written, the
/// guard bands of every buffer are intact, the inputs are unchanged bit for bit, and (when `repeat`) every
/// RunAgain gives the same bits. Never throws for what the variant does. Precondition:
/// !variant.declines(problem).
CheckedRun run_checked(const Variant& variant, const Problem& problem, bool repeat = true);

/// The first element where two outputs differ in their bits, in words; empty when they agree.
std::string first_difference(const Outputs& a, const Outputs& b);

}  // namespace gaugeblock
