#include "gaugeblock/verify/cases/layout.h"

#include <algorithm>
#include <numeric>

#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {

std::vector<Index> strides_in_order(const std::vector<Index>& shape, const std::vector<std::size_t>& order,
                                    const std::string& what) {
  element_count(shape, what);
  std::vector<Index> stride(shape.size());
  Index step = 1;
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    stride[*dimension] = step;
    step *= std::max<Index>(shape[*dimension], 1);
  }
  return stride;
}

std::vector<std::size_t> drawn_order(std::size_t rank, const Bits& random) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint32_t permutations = 1;
  for (std::uint32_t i = 2; i <= rank; ++i) permutations *= i;
  for (std::uint32_t skip = 1 + below(random[0], permutations - 1); skip > 0; --skip)
    std::next_permutation(order.begin(), order.end());
  return order;
}

}  // namespace gaugeblock
