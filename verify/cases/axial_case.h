// Cases of the axial attention block.
#pragma once

#include <cstdint>
#include <string>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

struct AxialCase {
  Index B = 1, H = 2, W = 3, D = 4, heads = 1;
  std::uint64_t seed = 1;
  bool operator==(const AxialCase&) const = default;
};

}  // namespace gaugeblock
