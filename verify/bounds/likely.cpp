#include "gaugeblock/verify/bounds/likely.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gaugeblock {

std::vector<double> mean_square_deviation(const std::vector<MonteCarlo>& actual, const std::vector<double>& expected) {
  std::vector<double> result(expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    double sum = 0;
    for (const float lane : actual[e].value) sum += (double(lane) - expected[e]) * (double(lane) - expected[e]);
    result[e] = std::isfinite(sum) ? sum / MonteCarlo::lanes : std::numeric_limits<double>::infinity();
  }
  return result;
}

std::vector<double> pooled(const std::vector<double>& mean_square, const Pooling& pooling, double own_share) {
  const Index size = static_cast<Index>(mean_square.size());
  const Index rows = size / pooling.row;
  // relative[r]: mean square of a row over the mean square of its scale; absolute rows keep their own mean
  std::vector<double> relative(rows);
  for (Index r = 0; r < rows; ++r) {
    double squares = 0;
    double scales = 0;
    for (Index e = r * pooling.row; e < (r + 1) * pooling.row; ++e) {
      squares += mean_square[e];
      scales += pooling.scale.empty() ? 1.0 : pooling.scale[e] * pooling.scale[e];
    }
    relative[r] = scales > 0 ? squares / scales : 0;
  }
  std::vector<double> result(size);
  for (Index r = 0; r < rows; ++r) {
    double sum = 0;
    Index count = 0;
    for (Index i = -pooling.reach; i <= pooling.reach; ++i) {
      const Index other = r + i * pooling.step;
      if (other < 0 || other >= rows || other / pooling.block != r / pooling.block) continue;
      if (!std::isfinite(relative[other])) continue;
      sum += relative[other];
      ++count;
    }
    const double pool = count > 0 ? sum / double(count) : std::numeric_limits<double>::infinity();
    for (Index e = r * pooling.row; e < (r + 1) * pooling.row; ++e) {
      const double scale = pooling.scale.empty() ? 1.0 : pooling.scale[e] * pooling.scale[e];
      const double from_pool = scale > 0 ? pool * scale : 0;
      result[e] = own_share > 0 ? own_share * mean_square[e] + (1 - own_share) * from_pool : from_pool;
    }
  }
  return result;
}

double half_ulp(double x) {
  const double magnitude = std::max(std::abs(x), double(std::numeric_limits<float>::min()));
  return std::ldexp(1.0, std::ilogb(magnitude) - 24);
}

std::vector<double> likely_limit(const std::vector<double>& expected, const std::vector<double>& mean_square,
                                 const std::vector<std::vector<double>>& plain_errors, const Pooling& pooling) {
  std::vector<double> limit = pooled(mean_square, pooling, 0.5);
  for (std::size_t e = 0; e < limit.size(); ++e)
    limit[e] = likely_sigmas * (std::sqrt(limit[e]) + half_ulp(expected[e]));
  for (const std::vector<double>& errors : plain_errors) {
    std::vector<double> squares(errors.size());
    for (std::size_t e = 0; e < errors.size(); ++e) squares[e] = errors[e] * errors[e];
    // Of the plain errors only the pool counts: an element's own would excuse itself.
    const std::vector<double> plain = pooled(squares, pooling, 0);
    // A plain form that overflowed or gave NaN says nothing; the comparison leaves the limit as it is then.
    for (std::size_t e = 0; e < limit.size(); ++e) {
      const double candidate = likely_plain_errors * std::sqrt(plain[e]);
      if (candidate > limit[e] && std::isfinite(candidate)) limit[e] = candidate;
    }
  }
  for (std::size_t e = 0; e < limit.size(); ++e)
    if (!std::isfinite(limit[e]) || !(std::abs(expected[e]) <= double(std::numeric_limits<float>::max())))
      limit[e] = std::numeric_limits<double>::infinity();
  return limit;
}

}  // namespace gaugeblock
