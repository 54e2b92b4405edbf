// How the tensors of a case may lie in memory, for both operations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {

/// Dense strides of dimensions that lie in memory in `order`, slowest first. Throws InputError when the
/// number of elements overflows; `what` names the tensor.
std::vector<Index> strides_in_order(const std::vector<Index>& shape, const std::vector<std::size_t>& order,
                                    const std::string& what);

/// A permutation of the dimensions other than the identity; rank >= 2.
std::vector<std::size_t> drawn_order(std::size_t rank, const Bits& random);

}  // namespace gaugeblock
