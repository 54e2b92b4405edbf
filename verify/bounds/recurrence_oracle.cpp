#include "gaugeblock/verify/bounds/recurrence_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/verify/bounds/claims.h"
#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/bounds/likely.h"
#include "gaugeblock/verify/bounds/recurrence_forms.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest_float = std::numeric_limits<float>::max();
// Intermediates above half the largest float32 might overflow in some order of evaluation.
constexpr double overflow_threshold = 0x1p127;
// Multiply-adds up to which the truth is computed in high precision; long double is exact enough beyond.
constexpr double high_precision_work = 20000;

/// What the bounds of every form are made of, for each element of one output tensor.
///
/// Notation of the claims: A = Σ|terms|, M = Σ age·|terms|, E the running bound of the state; for y each is
/// contracted with |q|. All in float64 from positive terms only, so the relative error is below (number of
/// operations)·2^-53.
struct Majorants {
  std::vector<double> plain;              ///< A, or B for y
  std::vector<double> aged;               ///< M, or BM for y
  std::vector<double> running;            ///< E, or its contraction with |q| and the error of the dot product
  std::vector<double> running_flushed;    ///< the same with flush to zero
  std::vector<double> underflow;          ///< H / η
  std::vector<double> window;             ///< Γ
  std::vector<double> coarse;             ///< R, the majorant by the largest entries; times ‖q‖₁ for y
  std::vector<double> largest;            ///< no intermediate of the definition exceeds this
  std::vector<double> largest_reordered;  ///< no intermediate of any division-free form exceeds this
  std::vector<double> largest_divided;    ///< … of the closed form; infinity outside its range
  std::vector<double> largest_segmented;  ///< … of the segmented closed form
  std::vector<Index> step;                ///< t, counted from 1

  explicit Majorants(Index size)
      : plain(size),
        aged(size),
        running(size),
        running_flushed(size),
        underflow(size),
        window(size),
        coarse(size),
        largest(size),
        largest_reordered(size),
        largest_divided(size),
        largest_segmented(size),
        step(size) {}
};

/// The view with dimension `dimension` traversed backwards.
template <class T, int Rank>
TensorView<T, Rank> reversed(TensorView<T, Rank> view, int dimension) {
  view.data += (view.shape[dimension] - 1) * view.stride[dimension];
  view.stride[dimension] = -view.stride[dimension];
  return view;
}

/// The same problem with the key dimension backwards: every dot product with q adds in the other order.
RecurrenceProblem with_keys_reversed(RecurrenceProblem problem) {
  problem.q = reversed(problem.q, 3);
  problem.k = reversed(problem.k, 3);
  if (problem.initial_state) problem.initial_state = reversed(*problem.initial_state, 2);
  return problem;
}

class RecurrenceOracle final : public Oracle {
 public:
  RecurrenceOracle(const Problem& problem, Truth truth)
      : problem_(problem),
        view_(recurrence_view(problem)),
        batches_(view_.batches()),
        steps_(view_.steps()),
        heads_(view_.heads()),
        keys_(view_.key_size()),
        values_(view_.value_size()),
        y_majorants_(batches_ * steps_ * heads_ * values_),
        state_majorants_(batches_ * heads_ * keys_ * values_) {
    const double work =
        double(batches_) * double(steps_ + 1) * double(heads_) * double(keys_) * double(values_);
    RecurrenceTruth computed =
        recurrence_truth(view_, truth == Truth::high_precision || work <= high_precision_work);
    truth_roundoff_ = computed.roundoff;
    expected_["y"] = std::move(computed.y);
    expected_["final_state"] = std::move(computed.final_state);
    compute_majorants();
  }

  const std::vector<double>& expected(const std::string& output) override { return expected_.at(output); }

  const std::vector<double>& proved(const std::string& output, const Arithmetic& arithmetic) override {
    auto [entry, is_new] = proved_.try_emplace({output, arithmetic});
    if (is_new) {
      entry->second.assign(expected_.at(output).size(), infinity);
      for (const std::string& claim : claims_about(output, arithmetic)) {
        const std::vector<double> other = proved_by(claim, output, arithmetic);
        for (std::size_t e = 0; e < other.size(); ++e)
          entry->second[e] = std::min(entry->second[e], other[e]);
      }
    }
    return entry->second;
  }

  std::vector<std::string> claims_about(const std::string& output,
                                        const Arithmetic& arithmetic) const override {
    if (arithmetic.form == "prefix_product_segmented") return {"recurrence.prefix_product_segmented"};
    // Between trees the state is carried as between chunks.
    const std::string form = arithmetic.operands == Operands::split_half         ? "chunked_split_half"
                             : arithmetic.form == "scan" && arithmetic.chunk > 0 ? "chunked"
                                                                                 : arithmetic.form;
    std::vector<std::string> ids{"recurrence." + form + (output == "y" ? ".output" : ".state")};
    if (form == "sequential") ids.emplace_back("recurrence.sequential.running");
    return ids;
  }

  std::vector<double> proved_by(const std::string& claim, const std::string& output,
                                const Arithmetic& arithmetic) override {
    const std::vector<std::string> ids = claims_about(output, arithmetic);
    if (std::find(ids.begin(), ids.end(), claim) == ids.end())
      throw std::logic_error("claim '" + claim + "' has no bound of " + output + " for " +
                             arithmetic_text(arithmetic));
    const bool is_y = output == "y";
    return bound(is_y ? y_majorants_ : state_majorants_, is_y, arithmetic,
                 claim == "recurrence.sequential.running", expected_.at(output));
  }

  const std::vector<double>& likely(const std::string& output, const Arithmetic& arithmetic) override {
    if (!likely_.contains({output, arithmetic})) compute_likely(arithmetic);
    return likely_.at({output, arithmetic});
  }

 private:
  using Key = std::pair<std::string, Arithmetic>;

  void compute_majorants() {
    for (Index b = 0; b < batches_; ++b)
      for (Index h = 0; h < heads_; ++h) follow(b, h);
  }

  /// Follows the majorants of one (b,h) over all steps.
  void follow(Index b, Index h) {
    const double u = claims::unit_roundoff;
    const double eta = claims::underflow;
    const double eta_flushed = claims::underflow_flushed;
    const Index size = keys_ * values_;
    std::vector<double> state(size), plain(size), aged(size, 0), running(size, 0), flushed(size, 0);
    std::vector<double> sources(values_, 1);  // 1 + |S0| + Σ (1 + |beta_s|)(1 + |v_s|)
    std::vector<double> largest(values_, 0);
    if (view_.initial_state)
      for (Index i = 0; i < keys_; ++i)
        for (Index j = 0; j < values_; ++j) {
          state[i * values_ + j] = (*view_.initial_state)(b, h, i, j);
          plain[i * values_ + j] = std::abs(state[i * values_ + j]);
          sources[j] = std::max(sources[j], 1 + plain[i * values_ + j]);
          largest[j] = std::max(largest[j], plain[i * values_ + j]);
        }
    double coarse = 0;
    for (const double s0 : plain) coarse = std::max(coarse, s0);
    double largest_k = 0;
    double largest_beta = 0;
    double window = 1;          // largest |Π gate| over windows that end here, the empty one included
    double largest_window = 1;  // Γ: the largest so far
    recurrence::PrefixRange range(view_, b, h);
    recurrence::PrefixSegments segments(view_, b, h);
    bool in_range = true;
    double largest_divided = 0;
    double largest_segmented = 0;
    double largest_reordered = 0;

    for (Index t = 0; t < steps_; ++t) {
      const double gate = std::abs(double(view_.gate(b, t, h)));
      const double signed_gate = view_.gate(b, t, h);
      const double beta = view_.beta(b, t, h);
      window = std::max(1.0, gate * window);
      largest_window = std::max(largest_window, window);
      largest_beta = std::max(largest_beta, std::abs(beta));
      range.advance(t);
      in_range = in_range && range.inside();
      segments.advance(t);
      double norm_q = 0;
      double step_k = 0;
      double step_v = 0;
      for (Index i = 0; i < keys_; ++i) {
        norm_q += std::abs(double(view_.q(b, t, h, i)));
        step_k = std::max(step_k, std::abs(double(view_.k(b, t, h, i))));
      }
      largest_k = std::max(largest_k, step_k);

      for (Index j = 0; j < values_; ++j) {
        const double v = view_.v(b, t, h, j);
        step_v = std::max(step_v, std::abs(v));
        sources[j] += (1 + std::abs(beta)) * (1 + std::abs(v));
        // Partial products of a write in any order: beta·k, beta·v, k·v.
        largest[j] =
            std::max({largest[j], step_k * std::max(1.0, std::abs(beta)) * std::max(1.0, std::abs(v)),
                      std::abs(beta) * std::max(1.0, std::abs(v))});
      }
      coarse = gate * coarse + std::abs(beta) * step_k * step_v;
      largest_reordered =
          std::max(largest_reordered, largest_window * std::max(1.0, largest_beta) *
                                          std::max({1.0, norm_q * largest_k, largest_k, norm_q}));
      largest_divided = std::max(largest_divided, range.largest());
      largest_segmented = std::max(largest_segmented, segments.largest());

      // float64 rounds the state itself; its error is covered by this share of the majorant.
      const double state_error = double(2 * t + 6) * 0x1p-53;
      for (Index i = 0; i < keys_; ++i) {
        const double bk = beta * double(view_.k(b, t, h, i));
        for (Index j = 0; j < values_; ++j) {
          const Index e = i * values_ + j;
          const double v = view_.v(b, t, h, j);
          const double write = std::abs(bk * v);
          const double before = std::abs(state[e]) + state_error * plain[e];
          aged[e] = gate * (aged[e] + plain[e]);
          plain[e] = gate * plain[e] + write;
          state[e] = signed_gate * state[e] + bk * v;
          const double after = std::abs(state[e]) + state_error * plain[e];
          // claim: recurrence.sequential.running
          const auto advance = [&](double& error, double lost) {
            const double write_error = (2 * u + u * u) * write + lost * ((1 + u) * std::abs(v) + 1);
            const double sum_error = (1 + u) * gate * error + u * gate * before + lost + write_error;
            error = (1 + u) * sum_error + u * after + lost;
          };
          advance(running[e], eta);
          advance(flushed[e], eta_flushed);
          largest[j] = std::max(largest[j], plain[e]);
        }
      }

      const double theta = theta_of(double(keys_));
      for (Index j = 0; j < values_; ++j) {
        const Index y = ((b * steps_ + t) * heads_ + h) * values_ + j;
        double sum = 0;
        double sum_aged = 0;
        double sum_running = 0;
        double sum_flushed = 0;
        for (Index i = 0; i < keys_; ++i) {
          const Index e = i * values_ + j;
          const double q = std::abs(double(view_.q(b, t, h, i)));
          sum += q * plain[e];
          sum_aged += q * aged[e];
          const double value = std::abs(state[e]) + state_error * plain[e];
          sum_running += q * (running[e] + theta * (value + running[e]));
          sum_flushed += q * (flushed[e] + theta * (value + flushed[e]));
        }
        y_majorants_.plain[y] = sum;
        y_majorants_.aged[y] = sum_aged;
        y_majorants_.running[y] = sum_running + 3 * double(keys_) * eta;
        y_majorants_.running_flushed[y] = sum_flushed + 3 * double(keys_) * eta_flushed;
        y_majorants_.underflow[y] =
            claims::underflow_amount(t + 1, keys_, largest_window, norm_q, largest_k, sources[j]);
        y_majorants_.window[y] = largest_window;
        y_majorants_.coarse[y] = norm_q * coarse;
        y_majorants_.largest[y] = std::max(largest[j], sum);
        y_majorants_.largest_reordered[y] = std::max(y_majorants_.largest[y], largest_reordered);
        y_majorants_.largest_divided[y] =
            in_range ? std::max(y_majorants_.largest[y], largest_divided) : infinity;
        y_majorants_.largest_segmented[y] = std::max(y_majorants_.largest[y], largest_segmented);
        y_majorants_.step[y] = t + 1;
      }
    }

    for (Index i = 0; i < keys_; ++i)
      for (Index j = 0; j < values_; ++j) {
        const Index e = i * values_ + j;
        const Index s = (b * heads_ + h) * size + e;
        state_majorants_.plain[s] = plain[e];
        state_majorants_.aged[s] = aged[e];
        state_majorants_.running[s] = running[e];
        state_majorants_.running_flushed[s] = flushed[e];
        state_majorants_.underflow[s] =
            claims::underflow_amount(steps_, 1, largest_window, 0, largest_k, sources[j]);
        state_majorants_.window[s] = largest_window;
        state_majorants_.coarse[s] = coarse;
        state_majorants_.largest[s] = largest[j];
        state_majorants_.largest_reordered[s] = std::max(largest[j], largest_reordered);
        state_majorants_.largest_divided[s] = in_range ? std::max(largest[j], largest_divided) : infinity;
        state_majorants_.largest_segmented[s] = std::max(largest[j], largest_segmented);
        state_majorants_.step[s] = steps_;
      }
  }

  static double theta_of(double roundings) {  // θ_n <= n u / (1 - n u)
    const double nu = roundings * claims::unit_roundoff;
    return nu < 1 ? nu / (1 - nu) : infinity;
  }

  claims::RoundingCount count(const Arithmetic& arithmetic, bool is_y, Index t) const {
    if (arithmetic.form == "sequential")
      return is_y ? claims::sequential_output(t, keys_) : claims::sequential_state(t);
    if (arithmetic.form == "masked_attention")
      return is_y ? claims::masked_attention_output(t, keys_) : claims::masked_attention_state(t);
    if (arithmetic.operands == Operands::split_half)
      return is_y ? claims::chunked_split_half_output(t, keys_, arithmetic.chunk)
                  : claims::chunked_split_half_state(t, arithmetic.chunk);
    if (arithmetic.chunk > 0)  // chunked, and trees between which the state is carried
      return is_y ? claims::chunked_output(t, keys_, arithmetic.chunk)
                  : claims::chunked_state(t, arithmetic.chunk);
    if (arithmetic.form == "scan") return is_y ? claims::scan_output(t, keys_) : claims::scan_state(t);
    if (arithmetic.form == "prefix_product" || arithmetic.form == "prefix_product_segmented")
      return is_y ? claims::prefix_product_output(t, keys_) : claims::prefix_product_state(t);
    if (arithmetic.form == "any_form")
      return is_y ? claims::any_form_output(t, keys_) : claims::any_form_state(t);
    throw std::logic_error("no bound of the recurrence is known for '" + arithmetic.form + "'");
  }

  std::vector<double> bound(const Majorants& majorants, bool is_y, const Arithmetic& arithmetic, bool running,
                            const std::vector<double>& expected) const {
    const double u = claims::unit_roundoff;
    const double eta = arithmetic.flush_to_zero ? claims::underflow_flushed : claims::underflow;
    const std::vector<double>& largest = arithmetic.form == "sequential"       ? majorants.largest
                                         : arithmetic.form == "prefix_product" ? majorants.largest_divided
                                         : arithmetic.form == "prefix_product_segmented"
                                             ? majorants.largest_segmented
                                             : majorants.largest_reordered;
    std::vector<double> result(expected.size());
    for (std::size_t e = 0; e < result.size(); ++e) {
      const Index t = majorants.step[e];
      if (t == 0) {  // nothing is computed: the final state is the initial state
        result[e] = 0;
        continue;
      }
      const claims::RoundingCount roundings = count(arithmetic, is_y, t);
      const auto by_count = [&](double unit) {
        const double nu = roundings.largest(double(t)) * unit;
        return nu < 1
                   ? unit * (roundings.per_age * majorants.aged[e] + roundings.fixed * majorants.plain[e]) /
                         (1 - nu)
                   : infinity;
      };
      double error = by_count(u) + eta * majorants.underflow[e];
      if (running) error = arithmetic.flush_to_zero ? majorants.running_flushed[e] : majorants.running[e];
      if (arithmetic.operands == Operands::split_half)
        error += claims::small_entry_error * majorants.coarse[e] +
                 eta * claims::scaled_underflow * majorants.underflow[e];
      // The truth is itself computed, by the definition, and then rounded to float64.
      const double truth_error = truth_roundoff_ * double(2 * t + keys_ + 4) * 2 * majorants.plain[e] +
                                 std::abs(expected[e]) * 0x1p-53;
      // The majorants are rounded too: outward by more than all their operations can have lost.
      const double outward = 1 + double(4 * t + 2 * keys_ + 64) * 0x1p-52;
      const bool in_range = largest[e] < overflow_threshold && std::abs(expected[e]) <= largest_float &&
                            claims::underflow_applies(t, is_y ? keys_ : 1, eta, majorants.window[e]);
      result[e] = in_range ? (error + truth_error) * outward : infinity;
    }
    return result;
  }

  /// Errors of one plain float32 run, by output.
  template <class Scalar>
  std::map<std::string, std::vector<double>> plain_errors(const Arithmetic& arithmetic, bool keys_backwards) {
    RecurrenceBuffers<Scalar> buffers(view_);
    RecurrenceOutputs<Scalar> out = buffers.view;
    if (keys_backwards) out.final_state = reversed(out.final_state, 2);
    run_recurrence_form(arithmetic, keys_backwards ? with_keys_reversed(view_) : view_, out);
    const auto errors = [](const std::vector<Scalar>& actual, const std::vector<double>& expected) {
      std::vector<double> result(expected.size());
      for (std::size_t e = 0; e < result.size(); ++e) {
        if constexpr (std::is_same_v<Scalar, FusedFloat>)
          result[e] = double(actual[e].value) - expected[e];
        else
          result[e] = double(actual[e]) - expected[e];
      }
      return result;
    };
    return {{"y", errors(buffers.y, expected_.at("y"))},
            {"final_state", errors(buffers.final_state, expected_.at("final_state"))}};
  }

  void compute_likely(const Arithmetic& arithmetic) {
    if (arithmetic.form == "any_form") return compute_likely_any_form(arithmetic);
    RecurrenceBuffers<MonteCarlo> buffers(view_);
    MonteCarlo::seed(fnv1a(problem_.case_text + arithmetic.form));
    run_recurrence_form(arithmetic, view_, buffers.view);
    std::vector<std::map<std::string, std::vector<double>>> plain;
    // Two orders, with and without FMA.
    plain.push_back(plain_errors<float>(arithmetic, false));
    plain.push_back(plain_errors<FusedFloat>(arithmetic, true));
    // Rows of neighbouring steps have about the same relative error, so they are pooled: a row of one element
    // alone would give a poor estimate.
    const Pooling y_pooling{values_, heads_, 4, steps_ * heads_, y_majorants_.plain};
    const Pooling state_pooling{values_, 1, keys_, keys_, state_majorants_.plain};
    for (const auto& [output, actual, pooling] :
         {std::tuple{std::string("y"), &buffers.y, &y_pooling},
          std::tuple{std::string("final_state"), &buffers.final_state, &state_pooling}}) {
      std::vector<std::vector<double>> errors;
      for (auto& run : plain) errors.push_back(std::move(run.at(output)));
      const std::vector<double>& truth = expected_.at(output);
      std::vector<double> limit =
          likely_limit(truth, mean_square_deviation(*actual, truth), errors, *pooling);
      // Three things Monte Carlo arithmetic cannot show in this few lanes. A term far below the others is lost
      // with certainty where terms cancel exactly, but at random only once in so many roundings as it is
      // smaller than an ulp. And one rounding of a partial sum as large as the majorant is u times that, also
      // where the plain forms' sums are all exact. Where products underflow, another order loses other digits,
      // and a subnormal state may stop decaying: there the proved term decides.
      const Majorants& majorants = output == "y" ? y_majorants_ : state_majorants_;
      const double eta = arithmetic.flush_to_zero ? claims::underflow_flushed : claims::underflow;
      for (std::size_t e = 0; e < limit.size(); ++e)
        limit[e] =
            std::max({limit[e], claims::unit_roundoff * majorants.plain[e], eta * majorants.underflow[e]});
      // Errors of equal gates line up in a tree of products as in the scan, and in no other form.
      if (arithmetic.tree_products) {
        const std::vector<double>& scan = likely(output, {.form = "scan"});
        for (std::size_t e = 0; e < limit.size(); ++e) limit[e] = std::max(limit[e], scan[e]);
      }
      // Split operands and the tensor core are what Monte Carlo arithmetic on float32 does not show. What they
      // do not hold is repaired step by step, so that equal writes may all round to the same side.
      if (arithmetic.operands == Operands::split_half) {
        const std::vector<double>& repaired = likely(output, {.form = "sequential"});
        for (std::size_t e = 0; e < limit.size(); ++e)
          limit[e] =
              std::max(limit[e] +
                           claims::unit_roundoff * claims::split_likely_roundings(keys_, arithmetic.chunk) *
                               majorants.plain[e] +
                           claims::small_entry_error * majorants.coarse[e] +
                           eta * claims::scaled_underflow * majorants.underflow[e],
                       repaired[e]);
      }
      likely_[{output, arithmetic}] = std::move(limit);
    }
  }

  /// An implementation of unknown form may be as good as the worst of the forms.
  void compute_likely_any_form(const Arithmetic& arithmetic) {
    for (const std::string output : {"y", "final_state"}) {
      std::vector<double> limit(expected_.at(output).size(), 0);
      for (const std::string form : {"sequential", "masked_attention", "chunked", "scan", "prefix_product",
                                     "prefix_product_segmented"}) {
        if (form == "prefix_product" && recurrence::prefix_product_declines(view_)) continue;
        Arithmetic one = arithmetic;
        one.form = form;
        one.chunk = form == "chunked" ? recurrence::default_chunk : 0;
        const std::vector<double>& other = likely(output, one);
        for (std::size_t e = 0; e < limit.size(); ++e) limit[e] = std::max(limit[e], other[e]);
      }
      likely_[{output, arithmetic}] = std::move(limit);
    }
  }

  const Problem& problem_;
  RecurrenceProblem view_;
  Index batches_, steps_, heads_, keys_, values_;
  double truth_roundoff_ = 0;
  Majorants y_majorants_;
  Majorants state_majorants_;
  std::map<std::string, std::vector<double>> expected_;
  std::map<Key, std::vector<double>> proved_;
  std::map<Key, std::vector<double>> likely_;
};

}  // namespace

std::unique_ptr<Oracle> make_recurrence_oracle(const Problem& problem, Truth truth) {
  return std::make_unique<RecurrenceOracle>(problem, truth);
}

}  // namespace gaugeblock
