// Truth and limits of a recurrence problem.
#pragma once

#include <memory>

#include "gaugeblock/verify/bounds/oracle.h"

namespace gaugeblock {

std::unique_ptr<Oracle> make_recurrence_oracle(const Problem& problem, Truth truth);

}  // namespace gaugeblock
