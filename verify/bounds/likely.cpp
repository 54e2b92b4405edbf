#include "gaugeblock/verify/bounds/likely.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gaugeblock {

std::vector<double> mean_square_deviation(const std::vector<MonteCarlo>& actual,
                                          const std::vector<double>& expected) {
  std::vector<double> result(expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    double sum = 0;
    for (const float lane : actual[e].value)
      sum += (double(lane) - expected[e]) * (double(lane) - expected[e]);
    result[e] = std::isfinite(sum) ? sum / MonteCarlo::lanes : std::numeric_limits<double>::infinity();
  }
  return result;
}

namespace {

double scale_of(const Pooling& pooling, Index element) {
  return pooling.scale.empty() ? 1.0 : pooling.scale[element];
}

/// Calls visit(other) for each row pooled with row r.
template <class Visitor>
void for_each_pooled(const Pooling& pooling, Index rows, Index r, Visitor&& visit) {
  for (Index i = -pooling.reach; i <= pooling.reach; ++i) {
    const Index other = r + i * pooling.step;
    if (other >= 0 && other < rows && other / pooling.block == r / pooling.block) visit(other);
  }
}

}  // namespace

std::vector<double> pooled(const std::vector<double>& mean_square, const Pooling& pooling) {
  const Index size = static_cast<Index>(mean_square.size());
  const Index rows = size / pooling.row;
  std::vector<double> relative(rows);  // mean square of a row over that of its scale
  for (Index r = 0; r < rows; ++r) {
    double squares = 0;
    double scales = 0;
    for (Index e = r * pooling.row; e < (r + 1) * pooling.row; ++e) {
      squares += mean_square[e];
      scales += scale_of(pooling, e) * scale_of(pooling, e);
    }
    relative[r] = scales > 0 ? squares / scales : 0;
  }
  std::vector<double> result(size);
  for (Index r = 0; r < rows; ++r) {
    double sum = 0;
    Index count = 0;
    for_each_pooled(pooling, rows, r, [&](Index other) {
      if (!std::isfinite(relative[other])) return;
      sum += relative[other];
      ++count;
    });
    const double pool = count > 0 ? sum / double(count) : std::numeric_limits<double>::infinity();
    for (Index e = r * pooling.row; e < (r + 1) * pooling.row; ++e) {
      const double scale = scale_of(pooling, e) * scale_of(pooling, e);
      result[e] = 0.5 * mean_square[e] + 0.5 * (scale > 0 ? pool * scale : 0);
    }
  }
  return result;
}

std::vector<double> largest_in_pool(const std::vector<double>& errors, const Pooling& pooling) {
  const Index size = static_cast<Index>(errors.size());
  const Index rows = size / pooling.row;
  std::vector<double> relative(rows, 0);
  for (Index e = 0; e < size; ++e) {
    const double scale = scale_of(pooling, e);
    const double ratio = scale > 0 ? std::abs(errors[e]) / scale : 0;
    // A run that overflowed or gave NaN says nothing.
    if (std::isfinite(ratio)) relative[e / pooling.row] = std::max(relative[e / pooling.row], ratio);
  }
  std::vector<double> result(size);
  for (Index r = 0; r < rows; ++r) {
    double largest = 0;
    for_each_pooled(pooling, rows, r, [&](Index other) { largest = std::max(largest, relative[other]); });
    for (Index e = r * pooling.row; e < (r + 1) * pooling.row; ++e)
      result[e] = largest * scale_of(pooling, e);
  }
  return result;
}

double half_ulp(double x) {
  const double magnitude = std::max(std::abs(x), double(std::numeric_limits<float>::min()));
  return std::ldexp(1.0, std::ilogb(magnitude) - 24);
}

std::vector<double> likely_limit(const std::vector<double>& expected, const std::vector<double>& mean_square,
                                 const std::vector<std::vector<double>>& plain_errors,
                                 const Pooling& pooling) {
  std::vector<double> limit = pooled(mean_square, pooling);
  for (std::size_t e = 0; e < limit.size(); ++e)
    limit[e] = likely_sigmas * (std::sqrt(limit[e]) + half_ulp(expected[e]));
  for (const std::vector<double>& errors : plain_errors) {
    const std::vector<double> largest = largest_in_pool(errors, pooling);
    for (std::size_t e = 0; e < limit.size(); ++e)
      limit[e] = std::max(limit[e], likely_plain_errors * largest[e]);
  }
  for (std::size_t e = 0; e < limit.size(); ++e)
    if (!std::isfinite(limit[e]) || !(std::abs(expected[e]) <= double(std::numeric_limits<float>::max())))
      limit[e] = std::numeric_limits<double>::infinity();
  return limit;
}

}  // namespace gaugeblock
