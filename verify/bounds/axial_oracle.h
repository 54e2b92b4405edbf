// Truth and limits of an axial problem.
#pragma once

#include <memory>

#include "gaugeblock/verify/bounds/oracle.h"

namespace gaugeblock {

std::unique_ptr<Oracle> make_axial_oracle(const Problem& problem, Truth truth);

}  // namespace gaugeblock
