#include "worst_ratios.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "gaugeblock/reference/axial/one_pass_variance.h"
#include "gaugeblock/reference/axial/online_softmax.h"
#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/reference/recurrence/sequential.h"
#include "gaugeblock/verify/bounds/axial_bound.h"
#include "gaugeblock/verify/bounds/axial_claims.h"
#include "gaugeblock/verify/bounds/axial_forms.h"
#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/bounds/recurrence_forms.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/random.h"
#include "gaugeblock/verify/variants/axial_cpu.h"

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void offer(WorstRatios& worst, const std::string& claim, double ratio, const std::string& where) {
  auto [entry, is_new] = worst.try_emplace(claim);
  if (is_new || ratio > entry->second.ratio) entry->second = {ratio, where};
}

/// error / bound; an exact result is 0 whatever the bound, NaN is infinite, no bound says nothing.
double ratio_of(double error, double bound) {
  if (error == 0 || bound == infinity) return 0;
  const double ratio = std::abs(error) / bound;
  return std::isnan(ratio) ? infinity : ratio;
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}
std::vector<double> doubles(const std::vector<FusedFloat>& values) {
  std::vector<double> result;
  for (const FusedFloat& value : values) result.push_back(double(value.value));
  return result;
}

double worst_of(const std::vector<double>& actual, const std::vector<double>& expected,
                const std::vector<double>& bound) {
  double worst = 0;
  for (std::size_t e = 0; e < actual.size(); ++e)
    worst = std::max(worst, ratio_of(actual[e] - expected[e], bound[e]));
  return worst;
}

// --- The recurrence ---------------------------------------------------------------------------------------

std::vector<Arithmetic> recurrence_arithmetics(Index chunk) {
  return {{.form = "sequential"}, {.form = "masked_attention"}, {.form = "chunked", .chunk = chunk},
          {.form = "scan"},       {.form = "prefix_product"},   {.form = "prefix_product_segmented"}};
}

template <class Scalar>
std::map<std::string, std::vector<double>> run_recurrence(const RecurrenceProblem& view,
                                                          const Arithmetic& arithmetic) {
  RecurrenceBuffers<Scalar> buffers(view);
  run_recurrence_form(arithmetic, view, buffers.view);
  return {{"y", doubles(buffers.y)}, {"final_state", doubles(buffers.final_state)}};
}

void measure_recurrence(const Problem& problem, const Arithmetic& arithmetic, Oracle& oracle,
                        const std::string& where, WorstRatios& worst) {
  const RecurrenceProblem view = recurrence_view(problem);
  Arithmetic flushed = arithmetic;
  flushed.flush_to_zero = true;
  for (const bool fused : {false, true}) {
    const auto outputs =
        fused ? run_recurrence<FusedFloat>(view, arithmetic) : run_recurrence<float>(view, arithmetic);
    for (const auto& [output, actual] : outputs) {
      const std::vector<double>& expected = oracle.expected(output);
      const std::string place =
          fmt::format("{}{} of {}", arithmetic_text(arithmetic), fused ? " with FMA" : "", where);
      for (const Arithmetic& model : {arithmetic, Arithmetic{.form = "any_form"}})
        for (const std::string& claim : oracle.claims_about(output, model))
          offer(worst, claim, worst_of(actual, expected, oracle.proved_by(claim, output, model)), place);

      // With results flushed to zero the bound grows by (2^-126 - 2^-150) / 2^-150 of its underflow term.
      const std::string counted = oracle.claims_about(output, arithmetic).front();
      std::vector<double> mostly_underflow = oracle.proved_by(counted, output, arithmetic);
      const std::vector<double> with_flushed = oracle.proved_by(counted, output, flushed);
      for (std::size_t e = 0; e < mostly_underflow.size(); ++e) {
        const double term = (with_flushed[e] - mostly_underflow[e]) / (0x1p24 - 1);
        if (!(term > mostly_underflow[e] / 2)) mostly_underflow[e] = infinity;
      }
      offer(worst, "recurrence.underflow", worst_of(actual, expected, mostly_underflow), place);
    }
  }
}

// --- The axial block --------------------------------------------------------------------------------------

using Doubles = axial::Matrix<double>;
using Exact = axial::Matrix<long double>;
using Floats = axial::Matrix<float>;

double worst_of(const Floats& actual, const Exact& expected, const Doubles& bound) {
  double worst = 0;
  for (Index e = 0; e < actual.size(); ++e)
    worst = std::max(worst, ratio_of(double(static_cast<long double>(actual(e)) - expected(e)), bound(e)));
  return worst;
}

template <class To>
axial::Weights<To> cast(const axial::Weights<float>& weights) {
  return {weights.norm_weight.template cast<To>(), weights.norm_bias.template cast<To>(),
          weights.qkv.template cast<To>(), weights.out.template cast<To>(),
          weights.out_bias.template cast<To>()};
}

Arithmetic axial_arithmetic(const std::string& form) {
  return {.form = form, .exp_error = host_exp_error};
}

/// One pass over one sequence x, [L,D], stage by stage in float32; every stage is judged on what it was
/// given.
void measure_stages(const Floats& x, const axial::Weights<float>& weights, Index heads, float eps,
                    const std::string& where, WorstRatios& worst) {
  const double u = claims::unit_roundoff;
  const double eta = claims::underflow;
  const Index D = x.cols();
  const Index d = D / heads;
  const auto exact_weights = cast<long double>(weights);
  const auto double_weights = cast<double>(weights);

  const Exact n_exact = axial::layer_norm<long double>(x.cast<long double>(), exact_weights, eps);
  const Floats n = axial::layer_norm<float>(x, weights, eps);
  offer(worst, "axial.layer_norm.two_pass",
        worst_of(n, n_exact,
                 layer_norm_bound(x.cast<double>(), double_weights, eps, axial_arithmetic("unfused"))),
        where);
  if (!axial::one_pass_variance_cancels(x.cast<double>(), eps))
    offer(worst, "axial.layer_norm.one_pass",
          worst_of(
              axial::layer_norm_one_pass<float>(x, weights, eps), n_exact,
              layer_norm_bound(x.cast<double>(), double_weights, eps, axial_arithmetic("one_pass_variance"))),
          where);

  const Floats qkv = n * weights.qkv.transpose();
  const Doubles qkv_size = n.cast<double>().cwiseAbs() * double_weights.qkv.cwiseAbs().transpose();
  const Doubles qkv_bound =
      (claims::gamma(claims::linear_roundings(double(D))) * qkv_size).array() + 2 * double(D) * eta;
  offer(worst, "axial.linear",
        worst_of(qkv, n.cast<long double>() * exact_weights.qkv.transpose(), qkv_bound), where);

  Floats o(x.rows(), D);
  for (Index head = 0; head < heads; ++head) {
    const Floats Q = qkv.middleCols(head * d, d);
    const Floats K = qkv.middleCols(D + head * d, d);
    const Floats V = qkv.middleCols(2 * D + head * d, d);
    const Exact o_exact = axial::softmax_attention<long double>(Q.cast<long double>(), K.cast<long double>(),
                                                                V.cast<long double>());
    const auto bound = [&](const char* form) {
      return attention_bound(Q.cast<double>(), K.cast<double>(), V.cast<double>(), axial_arithmetic(form));
    };
    const Floats o_head = axial::softmax_attention<float>(Q, K, V);
    offer(worst, "axial.attention.two_pass", worst_of(o_head, o_exact, bound("unfused")), where);
    offer(worst, "axial.attention.online",
          worst_of(axial::online_attention<float>(Q, K, V), o_exact, bound("online_softmax")), where);
    o.middleCols(head * d, d) = o_head;
  }

  const Floats projected = (o * weights.out.transpose()).rowwise() + weights.out_bias;
  const Exact projected_exact =
      (o.cast<long double>() * exact_weights.out.transpose()).rowwise() + exact_weights.out_bias;
  const Doubles projected_size =
      (o.cast<double>().cwiseAbs() * double_weights.out.cwiseAbs().transpose()).rowwise() +
      axial::RowVector<double>(double_weights.out_bias.cwiseAbs());
  const Doubles projected_bound =
      (claims::gamma(claims::linear_with_bias_roundings(double(D))) * projected_size).array() +
      (2 * double(D) + 1) * eta;
  offer(worst, "axial.linear", worst_of(projected, projected_exact, projected_bound), where);

  const Floats y = x + projected;
  const Exact y_exact = x.cast<long double>() + projected.cast<long double>();
  const Doubles residual_bound = (u * y_exact.cast<double>().cwiseAbs()).array() + eta;
  offer(worst, "axial.residual", worst_of(y, y_exact, residual_bound), where);
}

void measure_stages(const AxialProblem& problem, const std::string& where, WorstRatios& worst) {
  const bool along_rows = problem.passes != AxialPasses::col;
  const auto weights = axial::load<float>(along_rows ? problem.row : problem.col);
  const axial::Sequences sequences(problem, along_rows);
  const Floats tokens = axial::load<float>(problem.x);
  for (Index s = 0; s < sequences.count(); ++s) {
    const auto rows = Eigen::seqN(sequences[s].first, sequences[s].length, sequences[s].step);
    measure_stages(tokens(rows, Eigen::all), weights, problem.heads, problem.eps, where, worst);
  }
}

template <class Scalar>
void measure_axial_form(const AxialProblem& view, const std::string& form, Oracle& oracle,
                        const std::string& where, WorstRatios& worst) {
  AxialBuffers<Scalar> buffers(view);
  run_axial_form(form, view, buffers.view);
  std::map<std::string, std::vector<double>> outputs{{"y", doubles(buffers.y)}};
  if (!buffers.row.empty()) outputs["row"] = doubles(buffers.row);
  Arithmetic any = unknown_arithmetic(Operation::axial);
  for (const auto& [output, actual] : outputs)
    for (const Arithmetic& model : {axial_arithmetic(form), any})
      for (const std::string& claim : oracle.claims_about(output, model))
        offer(worst, claim, worst_of(actual, oracle.expected(output), oracle.proved_by(claim, output, model)),
              fmt::format("{} of {}", form, where));
}

// --- Bad inputs -------------------------------------------------------------------------------------------

/// The same binade, the low bits drawn again: some of them, so that near and far values are tried.
float with_other_low_bits(float value, Draw& draw) {
  const std::uint32_t mask = (1U << draw.between(1, 23)) - 1;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (draw.bits() & mask));
}

/// The same, or now and then another binade, of 2^-20 … 2^20.
float with_other_bits(float value, Draw& draw) {
  if (!draw.one_in(8)) return with_other_low_bits(value, draw);
  const float other = std::ldexp(value, static_cast<int>(draw.between(-4, 4)));
  return std::abs(other) > 0x1p-20F && std::abs(other) < 0x1p20F ? other : value;
}

/// Chooses values[first … last-1] anew, one after the other, among `candidates` that `change` makes of each,
/// such that `score` grows.
void climb(std::vector<float>& values, std::size_t first, std::size_t last, int candidates, Draw& draw,
           float (*change)(float, Draw&), const std::function<double()>& score) {
  double best = score();
  for (std::size_t i = first; i < last; ++i) {
    float chosen = values[i];
    for (int candidate = 0; candidate < candidates; ++candidate) {
      values[i] = change(chosen, draw);
      const double reached = score();
      if (!(reached > best)) continue;
      best = reached;
      chosen = values[i];
    }
    values[i] = chosen;
  }
}

/// A recurrence of one channel: its inputs lie step by step in one vector, in the order gate, beta, k, v, q,
/// after the initial state.
class OneChannel {
 public:
  static constexpr Index per_step = 5;

  /// Gates, beta, k and q of 1; one initial state and one v for every step.
  OneChannel(Index steps, float state, float write) : steps_(steps) {
    values.push_back(state);
    for (Index t = 0; t < steps; ++t) values.insert(values.end(), {1.0F, 1.0F, 1.0F, write, 1.0F});
  }

  std::vector<float> values;

  /// The first `steps` steps.
  RecurrenceProblem view(Index steps) const {
    RecurrenceProblem problem;
    const auto input = [&](Index offset) {
      return TensorView<const float, 4>{values.data() + 1 + offset, {1, steps, 1, 1}, {0, per_step, 0, 0}};
    };
    const auto factor = [&](Index offset) {
      return TensorView<const float, 3>{values.data() + 1 + offset, {1, steps, 1}, {0, per_step, 0}};
    };
    problem.gate = factor(0);
    problem.beta = factor(1);
    problem.k = input(2);
    problem.v = input(3);
    problem.q = input(4);
    problem.initial_state = contiguous_view<const float, 4>(values.data(), {1, 1, 1, 1});
    return problem;
  }

  /// |computed - exact| / |exact| of the state, or of the last output, after `steps` steps.
  double relative_error(const Arithmetic& arithmetic, Index steps, bool of_state) const {
    const RecurrenceProblem problem = view(steps);
    RecurrenceBuffers<float> computed(problem);
    RecurrenceBuffers<double> exact(problem);
    run_recurrence_form(arithmetic, problem, computed.view);
    recurrence::sequential<double>(problem, exact.view);
    const double truth = of_state ? exact.final_state[0] : exact.y[steps - 1];
    return std::abs(double(of_state ? computed.final_state[0] : computed.y[steps - 1]) - truth) /
           std::abs(truth);
  }

  Problem problem() const {
    Problem result = make_problem(parse_case(
        fmt::format("recurrence:B=1,T={},H=1,K=1,V=1,gate=one,beta=unit,qkv=normal,state=writes", steps_)));
    const std::array<const char*, per_step> names{"gate", "beta", "k", "v", "q"};
    for (Index i = 0; i < per_step; ++i) {
      std::vector<float> column;
      for (Index t = 0; t < steps_; ++t) column.push_back(values[1 + t * per_step + i]);
      result.inputs.at(names[i]).assign(column);
    }
    result.inputs.at("initial_state").assign({values[0]});
    return result;
  }

 private:
  Index steps_;
};

/// The worst inputs for one form that can be reached from these.
void search_recurrence(const Arithmetic& arithmetic, OneChannel inputs, Index steps,
                       const SearchEffort& effort, Draw& draw, const std::string& where, WorstRatios& worst) {
  std::vector<float>& values = inputs.values;
  for (const bool of_state : {true, false}) {
    // Greedy, step by step, by what has come out so far; then all steps by the result.
    for (Index t = 0; t < steps; ++t)
      climb(values, t == 0 ? 0 : 1 + t * OneChannel::per_step, 1 + (t + 1) * OneChannel::per_step,
            effort.candidates, draw, with_other_low_bits,
            [&] { return inputs.relative_error(arithmetic, t + 1, of_state); });
    for (int sweep = 0; sweep < effort.sweeps; ++sweep)
      climb(values, 0, values.size(), effort.candidates, draw, with_other_low_bits,
            [&] { return inputs.relative_error(arithmetic, steps, of_state); });
    const Problem problem = inputs.problem();
    const std::unique_ptr<Oracle> oracle = make_oracle(problem, Truth::high_precision);
    measure_recurrence(problem, arithmetic, *oracle, where, worst);
  }
}

void search_recurrence(std::uint64_t seed, const SearchEffort& effort, WorstRatios& worst) {
  Draw draw(seed, 0);
  std::vector<Arithmetic> arithmetics = recurrence_arithmetics(recurrence::default_chunk);
  arithmetics.push_back({.form = "chunked", .chunk = 4});
  struct Start {
    float state, write;
    Index longest;
    const char* name;
  };
  const std::vector<Start> starts{
      // A state of 1 and writes far below it: it is rounded 2 T times and stays near 1, where a rounding
      // changes a number most.
      {1.0F, 0x1p-18F, effort.longest, ""},
      {0x1p-18F, 1.0F, effort.longest / 8, ", writes"},
      // What underflows is all there is.
      {0x1p-140F, 0x1p-140F, effort.longest / 8, ", subnormal"},
  };
  for (const Arithmetic& arithmetic : arithmetics)
    for (const Start& start : starts)
      for (Index steps = 1; steps <= start.longest; steps *= 2)
        search_recurrence(arithmetic, OneChannel(steps, start.state, start.write), steps, effort, draw,
                          fmt::format("{} steps, one channel{}", steps, start.name), worst);
}

/// A tiny sequence with its parameters, all in one vector: x [L,D], norm.weight, norm.bias, qkv.weight,
/// out.weight, out.bias.
struct OneSequence {
  Index L, D, heads;
  std::vector<float> values;

  /// Entries near ± a small power of two; those of the projection 2^`out_exponent` times as large.
  OneSequence(Index length, Index width, Index head_count, int out_exponent, Draw& draw)
      : L(length), D(width), heads(head_count) {
    const Index before_out = L * D + 2 * D + 3 * D * D;
    for (Index i = 0; i < before_out + D * D + D; ++i)
      values.push_back(std::ldexp(draw.one_in(2) ? 1.0F : -1.0F, static_cast<int>(draw.between(-2, 0)) +
                                                                     (i < before_out ? 0 : out_exponent)));
  }

  void measure(const std::string& where, WorstRatios& worst) const {
    const float* next = values.data();
    const auto matrix = [&next](Index rows, Index columns) {
      const Floats result = Eigen::Map<const Floats>(next, rows, columns);
      next += rows * columns;
      return result;
    };
    const Floats x = matrix(L, D);
    axial::Weights<float> weights;
    weights.norm_weight = matrix(1, D);
    weights.norm_bias = matrix(1, D);
    weights.qkv = matrix(3 * D, D);
    weights.out = matrix(D, D);
    weights.out_bias = matrix(1, D);
    measure_stages(x, weights, heads, 1e-5F, where, worst);
  }

  /// The same as the row pass of a problem.
  Problem problem() const {
    Problem result =
        make_problem(parse_case(fmt::format("axial:B=1,H=1,W={},D={},heads={},passes=row", L, D, heads)));
    const float* next = values.data();
    for (const char* name :
         {"x", "row_norm.weight", "row_norm.bias", "row_qkv.weight", "row_out.weight", "row_out.bias"}) {
      Tensor& tensor = result.inputs.at(name);
      const std::size_t size = tensor.values().size();
      tensor.assign(std::vector<float>(next, next + size));
      next += size;
    }
    return result;
  }
};

void search_axial(std::uint64_t seed, const SearchEffort& effort, WorstRatios& worst) {
  Draw draw(seed, 1);
  const std::vector<std::string> stages{
      "axial.layer_norm.two_pass", "axial.layer_norm.one_pass", "axial.linear",
      "axial.attention.two_pass",  "axial.attention.online",    "axial.residual"};
  for (const auto& [L, D, heads] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {2, 2, 1}, {3, 4, 2}, {4, 8, 2}}) {
    if (D > effort.widest) continue;
    for (const std::string& stage : stages) {
      // A projection far below x leaves nothing of the block but its last rounding.
      OneSequence inputs(L, D, heads, stage == "axial.residual" ? -14 : 0, draw);
      const auto score = [&] {
        WorstRatios here;
        inputs.measure("", here);
        return here[stage].ratio;
      };
      for (int sweep = 0; sweep <= effort.sweeps; ++sweep)
        climb(inputs.values, 0, inputs.values.size(), effort.candidates, draw, with_other_bits, score);
      const std::string where = fmt::format("L={}, D={}, heads={}, {}", L, D, heads, stage);
      gaugeblock::measure_axial(inputs.problem(), where, worst);
    }
  }
}

}  // namespace

void measure_recurrence(const Problem& problem, const std::string& where, WorstRatios& worst) {
  const std::unique_ptr<Oracle> oracle = make_oracle(problem);
  const RecurrenceProblem view = recurrence_view(problem);
  for (const Arithmetic& arithmetic : recurrence_arithmetics(recurrence::default_chunk)) {
    if (arithmetic.form == "prefix_product" && recurrence::prefix_product_declines(view)) continue;
    measure_recurrence(problem, arithmetic, *oracle, where, worst);
  }
}

void measure_axial(const Problem& problem, const std::string& where, WorstRatios& worst) {
  const AxialProblem view = axial_view(problem);
  const std::unique_ptr<Oracle> oracle = make_oracle(problem);
  for (const std::string form : {"unfused", "online_softmax", "one_pass_variance", "fused_sequence"}) {
    if (form == "one_pass_variance" && axial::one_pass_variance_declines(view)) continue;
    measure_axial_form<float>(view, form, *oracle, where, worst);
    measure_axial_form<FusedFloat>(view, form, *oracle, where + " with FMA", worst);
  }
  measure_stages(view, where, worst);
}

WorstRatios campaign_worst_ratios(std::uint64_t seed, std::uint64_t cases) {
  // Enough for every family and size class; larger problems only repeat what smaller ones show.
  constexpr double largest_work = 1e5;
  WorstRatios worst;
  for (std::uint64_t index = 0; index < cases; ++index) {
    const Case recurrence = campaign_case(Operation::recurrence, seed, index, largest_work);
    measure_recurrence(make_problem(recurrence), print_case(recurrence), worst);
    const Case block = campaign_case(Operation::axial, seed, index, largest_work);
    measure_axial(make_problem(block), print_case(block), worst);
  }
  return worst;
}

WorstRatios search_worst_ratios(std::uint64_t seed, const SearchEffort& effort) {
  WorstRatios worst;
  search_recurrence(seed, effort, worst);
  search_axial(seed, effort, worst);
  return worst;
}

}  // namespace gaugeblock
