// The checks that people use for kernels like these, as faithful as they go without PyTorch. Each is a
// criterion alone; which inputs it is given is another question, and the table answers both.
#pragma once

#include <string>
#include <vector>

#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {

/// What a criterion looks at: one output tensor of one run. All of it may be beside the point for some.
struct Seen {
  const std::vector<float>& actual;
  const std::vector<double>& expected;
  double error_in_bfloat16 = 0;  ///< the largest of the definition with every stored value in bfloat16
  double error_in_float32 = 0;   ///< the largest of the definition in plain float32
  double calibrated = 0;         ///< 1.5 × the 95th percentile of the largest errors of correct runs
};

struct Checker {
  std::string name;
  std::string source;
  bool (*accepts)(const Seen&);
};

const std::vector<Checker>& other_checkers();

/// The definition as a program in bfloat16 computes it: sums in float32, every stored value rounded to 8
/// bits.
Outputs in_bfloat16(const Problem& problem);

/// max |actual - expected|; NaN when an error is.
double largest_error(const std::vector<float>& actual, const std::vector<double>& expected);

}  // namespace gaugeblock
