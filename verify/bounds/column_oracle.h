// The second half of an axial block by itself.
#pragma once

#include <memory>

#include "gaugeblock/verify/bounds/oracle.h"

namespace gaugeblock {

/// The oracle of the column pass on x := row, for a problem with both passes and a given result `row` of its
/// row pass. It owns what it needs.
std::unique_ptr<Oracle> make_column_oracle(const Problem& problem, const Tensor& row);

}  // namespace gaugeblock
