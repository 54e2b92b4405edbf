// The reference forms of the axial block in float32, as variants.
#pragma once

#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Relative error of the C library's expf in units of u = 2^-24. glibc 2.36 stays within 0.99991 u of e^x at
/// every float in [-104, 0] whose result is normal (tests/unit/axial_exp_error.cpp measures it); correct
/// rounding alone may reach 1 u.
inline constexpr double host_exp_error = 1.01;

std::vector<Variant> axial_cpu_variants();

}  // namespace gaugeblock
