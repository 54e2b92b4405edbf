// The constants of every proved bound of the recurrence, each with the id of the claim it rests on.
//
// A count is the largest number of roundings on the way of one term into a result: per_age · a + fixed for
// the term written a steps ago. By the counter calculus (claim `counter_calculus`) the error is then at most
//
//     κ u (per_age · age-weighted majorant + fixed · majorant) + H     κ = 1 / (1 − N u),  N the largest count
//
// t counts from 1, `dot` is the length of the dot product with q (K), u = 2^-24.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock::claims {

inline constexpr double unit_roundoff = 0x1p-24;       ///< u: float32, round to nearest
inline constexpr double underflow = 0x1p-150;          ///< η: gradual underflow, half the smallest subnormal
inline constexpr double underflow_flushed = 0x1p-126;  ///< η: subnormal results become zero

struct RoundingCount {
  double per_age = 0;
  double fixed = 0;
  double largest(double age) const { return per_age * age + fixed; }
};

/// ⌈log2 t⌉ for t >= 1.
inline double ceil_log2(Index t) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(t - 1)));
}

// claim: recurrence.sequential.output, recurrence.sequential.state
inline RoundingCount sequential_output(Index, Index dot) {
  return {2, static_cast<double>(dot + 3)};
}
inline RoundingCount sequential_state(Index) {
  return {2, 3};
}

// claim: recurrence.masked_attention.output, recurrence.masked_attention.state
inline RoundingCount masked_attention_output(Index t, Index dot) {
  return {1, static_cast<double>(t + dot + 2)};
}
inline RoundingCount masked_attention_state(Index t) {
  return {1, static_cast<double>(t + 2)};
}

// claim: recurrence.chunked.output, recurrence.chunked.state
inline RoundingCount chunked_output(Index t, Index dot, Index chunk) {
  const auto c = static_cast<double>(std::min(chunk, t));
  return {1 + 1 / c, 2 * c + static_cast<double>(dot + 4)};
}
inline RoundingCount chunked_state(Index t, Index chunk) {
  const auto c = static_cast<double>(std::min(chunk, t));
  return {1 + 1 / c, 2 * c + 4};
}

// claim: recurrence.scan.output, recurrence.scan.state
inline RoundingCount scan_output(Index t, Index dot) {
  return {1, 2 * ceil_log2(t) + static_cast<double>(dot + 4)};
}
inline RoundingCount scan_state(Index t) {
  return {1, 2 * ceil_log2(t) + 4};
}

// claim: recurrence.prefix_product.output, recurrence.prefix_product.state (inside the range of the closed
// form)
inline RoundingCount prefix_product_output(Index t, Index dot) {
  return {0, static_cast<double>(3 * t + dot + 3)};
}
inline RoundingCount prefix_product_state(Index t) {
  return {0, static_cast<double>(3 * t + 3)};
}

// claim: recurrence.any_form.output, recurrence.any_form.state: any of the forms above
inline RoundingCount any_form_output(Index t, Index dot) {
  return {0, static_cast<double>(3 * t + dot + 4)};
}
inline RoundingCount any_form_state(Index t) {
  return {0, static_cast<double>(3 * t + 4)};
}

// claim: recurrence.chunked_split_half.output, recurrence.chunked_split_half.state
//
// Products of matrices on tensor cores in split float16: see proofs_notes/notes/split_half.md. In units of u.

/// A product of two entries, each within 2^-22 of high + low, one of which may be split a second time after a
/// scaling, without low·low: 4 · 2^-22, and 1 for what is smaller.
inline constexpr double split_product_error = 17;
/// What one instruction, which adds 16 products to an accumulator, may lose of the sum of magnitudes.
inline constexpr double matrix_step_error = 16;
/// Steps of a sum of n products: three parts, 16 products a step.
inline double matrix_steps(Index n) {
  return 3 * std::ceil(static_cast<double>(n) / 16);
}
/// What one split product of matrices adds to the count of a term.
inline double split_matrix_roundings(Index n) {
  return split_product_error + matrix_step_error * matrix_steps(n);
}
/// K is padded by zeros to this.
inline Index padded_key_size(Index dot) {
  return dot <= 64 ? 64 : 128;
}
/// Never less than the sequential form needs, which repairs what split float16 does not hold. A write meets
/// its own chunk's product (Kᵀ W) once, and then for each chunk one product and one addition, and one more of
/// both where segments are joined; an output two products (q kᵀ and P V), or one (q S).
inline RoundingCount chunked_split_half_state(Index, Index chunk) {
  const auto c = static_cast<double>(chunk);
  return {2, 2 * c + 8 + split_matrix_roundings(chunk)};
}
inline RoundingCount chunked_split_half_output(Index t, Index dot, Index chunk) {
  RoundingCount count = chunked_split_half_state(t, chunk);
  count.fixed += static_cast<double>(dot + 8) + split_matrix_roundings(padded_key_size(dot)) +
                 split_matrix_roundings(chunk);
  return count;
}
/// What small entries lose, in units of ‖q‖₁ (1 for a state) times R, the largest sum of writes
/// R_t = |gate_t| R_{t-1} + |beta_t| max|k_t| max|v_t|, R_0 = max|S_0|: a scaled operand is at least 2^14 at
/// its largest, and is cut off at 2^-25.
inline constexpr double small_entry_error = 0x1p-29;
/// The same of factors that underflow although they are to be multiplied by scaled operands.
inline constexpr double scaled_underflow = 0x1p40;
/// The truncation of a matrix step is biased: it takes one u off on average.
inline double split_likely_roundings(Index dot, Index chunk) {
  return split_product_error + matrix_steps(padded_key_size(dot)) + 2 * matrix_steps(chunk);
}

/// H / η, the collected underflow of a result at step t (claim: recurrence.underflow). `window` is Γ, the
/// largest |Π gate| over windows, at least 1; `norm_q` is ‖q‖₁ (0 for a state, with dot = 1); `sources` is 1
/// + |S0| + Σ_s (1 + |beta_s|)(1 + |v_s|).
///
/// Γ is squared because a product of gates may be formed in any order: (g1 (g2 g3)) g4 with 1e30, 1e-30,
/// 1e-30, 1e30 loses the middle to underflow, though every prefix is harmless.
inline double underflow_amount(Index t, Index dot, double window, double norm_q, double largest_k,
                               double sources) {
  return static_cast<double>(dot) * static_cast<double>(3 * t + dot + 6) * window * window * (1 + norm_q) *
         (1 + largest_k) * sources;
}

/// The hypothesis of recurrence.underflow: where it does not hold there is no bound.
inline bool underflow_applies(Index t, Index dot, double eta, double window) {
  return static_cast<double>(2 * t + 2 * dot + 4) * (unit_roundoff + eta * window) <= 1.0 / 16;
}

}  // namespace gaugeblock::claims
