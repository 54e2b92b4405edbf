// The scalar type of the truth where it has to be beyond doubt: MPFR, 50 decimal digits, at least 160 bits.
#pragma once

#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfr.hpp>

namespace gaugeblock {

using HighPrecision = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<50>,
                                                    boost::multiprecision::et_off>;

/// 2^-160 bounds the relative error of one operation on HighPrecision.
inline constexpr double high_precision_roundoff = 0x1p-160;

}  // namespace gaugeblock
