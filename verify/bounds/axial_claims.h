// The constants of every proved bound of the axial block, each with the id of the claim it rests on.
//
// A count is the largest number of float32 roundings on the way of one term into a result, in any order of
// the sum and with or without FMA. n roundings change a term by a factor within 1 ± gamma(n).
#pragma once

#include <limits>

#include "gaugeblock/verify/bounds/claims.h"

namespace gaugeblock::claims {

/// n u / (1 - n u) bounds |(1 + δ_1)…(1 + δ_n) - 1| and |1 / ((1 + δ_1)…(1 + δ_n)) - 1| for |δ_i| <= u.
inline double gamma(double roundings) {
  const double nu = roundings * unit_roundoff;
  return nu < 0.5 ? nu / (1 - nu) : std::numeric_limits<double>::infinity();
}

// claim: axial.layer_norm.two_pass, axial.layer_norm.one_pass

/// Mean of n terms: n - 1 additions, then a division, or a product with the rounded 1/n.
inline double mean_roundings(double n) {
  return n + 1;
}
/// Mean of n squares: the product and a mean.
inline double mean_square_roundings(double n) {
  return n + 2;
}
/// Two-pass variance: the rounded difference x - mean counts twice in its square, then a mean of squares; one
/// more for the underflow of the differences.
inline double variance_roundings(double n) {
  return n + 5;
}
/// 1 / √a, both operations correctly rounded: (1 + u) / (1 - u) lies below (1 + u)^3.
inline constexpr double root_roundings = 3;
/// One reciprocal square root within 2 ulp of the correctly rounded one, as CUDA documents rsqrtf: 5 u.
inline constexpr double reciprocal_root_roundings = 5;
/// x - mean, times 1 / √a, times the weight (in either order); the bias is added with one more.
inline constexpr double normalize_roundings = 3;
/// The folded form x·s + (bias - mean·s), s = weight / √a: beside the above, one rounding of x·s, two of
/// mean·s and one of the bias. Those that follow them, u² and less, fit into a second one.
inline constexpr double folded_roundings = 2;

// claim: axial.linear

/// Dot product of n terms without bias: the product and n - 1 additions.
inline double linear_roundings(double n) {
  return n;
}
/// The same with a bias, which may enter the sum anywhere.
inline double linear_with_bias_roundings(double n) {
  return n + 1;
}

// claim: axial.attention.two_pass, axial.attention.online

/// Logit of a head of d channels: a dot product of d terms and then its product with the rounded 1 / √d (two
/// more), or a division by the rounded √d. A scale applied to q or to k before is counted alike; what may
/// underflow there is 2 η Σ (|q| + |k|) more.
inline double logit_roundings(double d) {
  return d + 3;
}
/// One term p_j v_j of the numerator: the product, L - 1 additions, one product for each rescaling.
inline double numerator_roundings(double L, double rescalings) {
  return L + rescalings;
}
/// The denominator and the quotient: L - 1 additions, one product for each rescaling, and a division or the
/// product with a rounded reciprocal.
inline double quotient_roundings(double L, double rescalings) {
  return L + rescalings + 1;
}
/// Results below 2^-126 of exp, of a rescaling or of p_j v_j: each loses at most this much.
inline constexpr double small_weight = 0x1p-126;
/// What they cost the quotient altogether, V the largest |v| + error of the channel.
inline double quotient_lost(double L, double rescalings, double V) {
  return 64 * L * (rescalings + 1) * small_weight * (1 + V);
}
/// The hypotheses of the theorems about the block: (D + 5)² u <= 1/4 (D <= 2043), few enough keys and
/// rescalings J for their roundings and for what underflow may take, and an exp of relative error `exp_error`
/// <= 1/4.
inline bool within_theorems(double D, double L, double rescalings, double exp_error, double eta) {
  return (D + 5) * (D + 5) * unit_roundoff <= 0.25 && (L + rescalings + 1) * unit_roundoff <= 0x1p-4 &&
         80 * L * (rescalings + 1) * small_weight <= 1 && exp_error <= 0.25 &&
         (rescalings + 1) * (eta + exp_error / (1 - exp_error) + small_weight) <= 0.5;
}

/// exp within 2 ulp of the correctly rounded value, in units of u: what CUDA documents for expf, and what is
/// assumed of an implementation that nothing is known about.
inline constexpr double unknown_exp_error = 5;

// claim: axial.block

/// Above this an intermediate might overflow in some order of evaluation.
inline constexpr double overflow_threshold = 0x1p127;
/// The bounds are themselves computed in float64, from float64 values of every intermediate. Those are wrong
/// by at most 2^-28 of the very bounds (the same theorems with u = 2^-53), and so is the arithmetic on the
/// bounds; the truth in long double by less than 2^-36 of them. This factor covers all of it many times.
inline constexpr double outward = 1 + 0x1p-10;

}  // namespace gaugeblock::claims
