// Deliberately wrong forms of the recurrence, as variants: what a check that means something must catch.
#pragma once

#include <string>
#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

struct PlantedFault {
  Variant variant;
  Index needs_steps = 4;  ///< a shrunk case may have at most this many steps
  std::string needs_why;  ///< why more than 4, if so
};

std::vector<PlantedFault> recurrence_planted_faults();

}  // namespace gaugeblock
