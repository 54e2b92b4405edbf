// Cases as values of rapidcheck, for property tests.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>

#include "gaugeblock/verify/cases/case.h"

namespace gaugeblock {

/// Generator over all families and layouts, shrinking by simpler(). `largest_work` limits work(c).
rc::Gen<Case> arbitrary_case(Operation operation, double largest_work);

/// Prints a counterexample as the command that repeats it.
void showValue(const Case& c, std::ostream& out);

}  // namespace gaugeblock
