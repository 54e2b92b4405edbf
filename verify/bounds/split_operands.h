// The constants of products with split float16 operands on tensor cores:
// proofs_notes/notes/split_operands.md.
#pragma once

#include <cmath>

#include "gaugeblock/verify/bounds/claims.h"

namespace gaugeblock::claims {

// claim: axial.split_half

/// A float32 number x, scaled by a power of two into float16's range, is hi + lo, both float16. What that
/// loses: relative to |x|, and absolutely (of the scaled x), because lo may fall below float16's normal
/// numbers.
inline constexpr double split_relative = 0x1p-22;
inline constexpr double split_absolute = 0x1p-25;

/// A product as hi·hi + hi·lo + lo·hi, each exact, in units of u = 2^-24: an operand's 4 twice, 4 for lo·lo,
/// and less than 1 for all that is of second order.
inline constexpr double split_product_roundings = 13;

/// How far products go astray in Monte Carlo arithmetic, uniformly, in units of u: a third of the above,
/// which is what three independent parts of 4 u rarely exceed together.
inline constexpr double split_product_spread = 4;

/// One accumulation c + Σ a_k b_k of up to 16 products on a tensor core, in units of u (|c| + Σ |a_k b_k|).
/// Assumed: the unit truncates terms against the largest and then the sum; tests/bench/measure_tensor_core.cu
/// finds at most half of it.
inline constexpr double tensor_accumulation_roundings = 16;

/// A dot product of n terms: for each 16 of them three accumulations, in any order and on any number of
/// accumulators, one addition of an accumulator, and at the end two scales that are no powers of two.
inline double split_dot_roundings(double n) {
  const double accumulations = 3 * std::ceil(n / 16);
  return split_product_roundings + (tensor_accumulation_roundings + 1) * accumulations + 2;
}

// The axial kernels (gpu/axial/split_half.h): what the absolute loss comes to.

/// A sum of n scaled products within 2^28, its operands within 2^14 and above a quarter of that if they are
/// as large as their bounds: n + 2 times this, of the bound of the sum.
inline constexpr double split_sum_loss = 0x1p-35;
/// q or k with the logit's scale spread over both: 2^-25 of either, a scale within a factor of 4 of the
/// root of what they share, and ln 2.
inline constexpr double split_logit_loss = 4 * 0x1p-25;
/// Exponents of weights carry at most 16 beside the distance from the maximum: 16 u ln 2, rounded up.
inline constexpr double split_exponent_shift = 12;
/// The distance from the maximum is rounded by the subtraction and by the product with the logit's scale.
inline constexpr double split_distance_roundings = 2;
/// Weights of L keys lose 2^-25 each, of a sum that is at least L/2 or at least 2^7.
inline double split_weights_loss(double L) {
  return std::fmax(0x1p-24, L * 0x1p-32);
}

}  // namespace gaugeblock::claims
