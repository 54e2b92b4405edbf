// The reference forms of the recurrence in float32, as variants.
#pragma once

#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

std::vector<Variant> recurrence_cpu_variants();

}  // namespace gaugeblock
