// The reference forms of the axial block in float32, as variants.
#pragma once

#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

std::vector<Variant> axial_cpu_variants();

}  // namespace gaugeblock
