// The likely limit: how far a correct float32 implementation strays in practice.
//
// It is the larger of 8 σ and 4 × the largest error of the plain float32 forms in the element's pool, on the
// very same problem. σ is the spread of an element in Monte Carlo arithmetic, pooled with its row's, plus
// half an ulp of the value. It is an assumption, calibrated by campaigns, not a theorem.
#pragma once

#include <vector>

#include "gaugeblock/reference/tensor_view.h"
#include "gaugeblock/verify/bounds/monte_carlo.h"

namespace gaugeblock {

inline constexpr double likely_sigmas = 8;
inline constexpr double likely_plain_errors = 4;

/// One output tensor seen by the pooling: elements in C order, `row` consecutive elements form a row.
///
/// `scale` > 0 makes elements comparable before they are pooled (for instance their majorants).
/// `group` names for each row the rows pooled with it: row r is pooled with r + i·step, |i| <= reach, while
/// these stay in the same block of `block` rows. reach = 0 pools a row with itself only.
struct Pooling {
  Index row = 1;
  Index step = 1;
  Index reach = 0;
  Index block = 1;
  std::vector<double> scale;
};

/// Mean squared deviation of the lanes from the truth, element by element; infinity where a lane is not
/// finite.
std::vector<double> mean_square_deviation(const std::vector<MonteCarlo>& actual,
                                          const std::vector<double>& expected);

/// Half an element's own mean square and half its pool's.
std::vector<double> pooled(const std::vector<double>& mean_square, const Pooling& pooling);

/// The largest error of an element's pool, relative to the scale. The largest and not the mean: where inputs
/// repeat, rounding errors line up in some elements and not in others.
std::vector<double> largest_in_pool(const std::vector<double>& errors, const Pooling& pooling);

/// Half an ulp of the float32 nearest to x.
double half_ulp(double x);

/// The limit. `plain_errors`: for each run of a plain float32 form, actual - expected.
std::vector<double> likely_limit(const std::vector<double>& expected, const std::vector<double>& mean_square,
                                 const std::vector<std::vector<double>>& plain_errors,
                                 const Pooling& pooling);

}  // namespace gaugeblock
