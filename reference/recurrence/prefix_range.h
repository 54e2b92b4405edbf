// Where the closed form by prefix products stays within the range of float32.
//
// P_t = Π gate_r. The closed form divides each write by P_s and multiplies by P_t later, so it is right only
// while P and the divided writes are normal float32 numbers:
//
//     2^-125 <= |P_s| < 2^126
//     W = max|S_0| + Σ_s |beta_s| max(1,|k_s|) max(1,|v_s|) / |P_s| < 2^120      and      ‖q_t‖₁ W < 2^126
//
// The maxima with 1 keep the partial products beta/P and (beta/P)·k inside as well. All conditions are
// decided from the inputs, in float64, never from computed values. 2^-125 and not 2^-126, so that the rounded
// P is normal as well.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "gaugeblock/reference/recurrence/problem.h"

namespace gaugeblock::recurrence {

/// Follows |P| and the size of the divided writes of one (b,h) along a segment. The problem must outlive it.
class PrefixRange {
 public:
  PrefixRange(const RecurrenceProblem& problem, Index b, Index h) : problem_(&problem), b_(b), h_(h) {
    if (!problem.initial_state) return;
    for (Index i = 0; i < problem.key_size(); ++i)
      for (Index j = 0; j < problem.value_size(); ++j)
        size_ = std::max(size_, std::abs(double((*problem.initial_state)(b, h, i, j))));
  }

  /// Takes step t into the segment.
  void advance(Index t) {
    product_ *= std::abs(double(problem_->gate(b_, t, h_)));
    size_ += write_size(t) / product_;
    norm_q_ = norm_q(t);
  }

  /// Starts a new segment: the state so far, P · W, becomes its initial state.
  void restart() {
    size_ *= product_;
    product_ = 1;
  }

  /// Takes step t as the definition has it, S = gate · S + beta k vᵀ, at the start of a segment.
  void step(Index t) {
    size_ = size_ * std::abs(double(problem_->gate(b_, t, h_))) + write_size(t);
    norm_q_ = norm_q(t);
  }

  /// Whether the segment is within range; `margin` < 1 keeps that power of the range of P free.
  bool inside(double margin = 1) const {
    return product_ >= std::exp2(-125 * margin) && product_ < std::exp2(126 * margin) &&
           size_ < std::exp2(120.0) && largest() < std::exp2(126.0);
  }

  /// Upper bound on every |W_ij| and every partial sum of qᵀW at the last step.
  double largest() const { return norm_q_ <= 1 ? size_ : size_ * norm_q_; }

 private:
  double write_size(Index t) const {
    double largest_k = 1;
    double largest_v = 1;
    for (Index i = 0; i < problem_->key_size(); ++i)
      largest_k = std::max(largest_k, std::abs(double(problem_->k(b_, t, h_, i))));
    for (Index j = 0; j < problem_->value_size(); ++j)
      largest_v = std::max(largest_v, std::abs(double(problem_->v(b_, t, h_, j))));
    return std::abs(double(problem_->beta(b_, t, h_))) * largest_k * largest_v;
  }

  double norm_q(Index t) const {
    double sum = 0;
    for (Index i = 0; i < problem_->key_size(); ++i) sum += std::abs(double(problem_->q(b_, t, h_, i)));
    return sum;
  }

  const RecurrenceProblem* problem_;
  Index b_;
  Index h_;
  double product_ = 1;
  double size_ = 0;
  double norm_q_ = 0;
};

/// Cuts the steps of one (b,h) into segments that stay within half of the range, so that a restart comes long
/// before a rounding of P could matter.
class PrefixSegments {
 public:
  enum class Step {
    extend,              ///< the step joins the segment
    restart_and_extend,  ///< a new segment starts with it
    restart_and_define,  ///< outside the range by itself (a gate of zero): taken as the definition has it
  };

  PrefixSegments(const RecurrenceProblem& problem, Index b, Index h) : range_(problem, b, h) {}

  Step advance(Index t) {
    constexpr double margin = 0.5;
    PrefixRange extended = range_;
    extended.advance(t);
    Step step = Step::extend;
    if (!extended.inside(margin)) {
      range_.restart();
      extended = range_;
      extended.advance(t);
      step = Step::restart_and_extend;
    }
    if (!extended.inside(margin)) {
      range_.step(t);
      return Step::restart_and_define;
    }
    range_ = extended;
    return step;
  }

  double largest() const { return range_.largest(); }

 private:
  PrefixRange range_;
};

/// Why `prefix_product` cannot take the problem, or nothing: names the first step that leaves the range.
inline std::optional<std::string> prefix_product_declines(const RecurrenceProblem& problem) {
  for (Index b = 0; b < problem.batches(); ++b) {
    for (Index h = 0; h < problem.heads(); ++h) {
      PrefixRange range(problem, b, h);
      for (Index t = 0; t < problem.steps(); ++t) {
        range.advance(t);
        if (!range.inside())
          return "the prefix product of the gates leaves its range at b=" + std::to_string(b) +
                 ", t=" + std::to_string(t) + ", h=" + std::to_string(h) +
                 ": 2^-125 <= |P| < 2^126, writes / |P| < 2^120 and |q| times that < 2^126 are needed";
      }
    }
  }
  return std::nullopt;
}

}  // namespace gaugeblock::recurrence
