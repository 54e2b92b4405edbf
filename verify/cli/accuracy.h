// How far a variant's y lies from the definition as a whole: what a table of times needs beside each time.
#pragma once

#include <vector>

#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {

/// The definition of a problem's first batch (recurrence: and first head), in float64.
class Accuracy {
 public:
  explicit Accuracy(const Problem& problem);

  /// Frobenius norm of y - expected over that of expected, on that batch and head. NaN when y has one.
  double error_of(const Outputs& outputs) const;
  /// The same of the definition computed in float32.
  double float32_error() const { return float32_error_; }

 private:
  Operation operation_;
  std::vector<double> expected_;
  double float32_error_;
};

}  // namespace gaugeblock
