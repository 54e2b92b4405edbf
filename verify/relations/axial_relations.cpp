#include "gaugeblock/verify/relations/axial_relations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/bounds/axial_bound.h"
#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {
namespace {

using Result = RelationResult;
using Subscript = std::vector<Index>;

constexpr double infinity = std::numeric_limits<double>::infinity();

Result equal_or_broken(const std::string& what, const std::string& difference) {
  return difference.empty() ? Result::holds() : Result::broken(what + ": " + difference);
}

/// "row" and "col", as far as these passes run.
std::vector<std::string> passes_of(const Problem& problem) {
  std::vector<std::string> passes;
  if (problem.attributes.passes != AxialPasses::col) passes.push_back("row");
  if (problem.attributes.passes != AxialPasses::row) passes.push_back("col");
  return passes;
}

/// The problem with `value` in every place of the input `name`.
void change(Problem& problem, const std::string& name,
            const std::function<float(const Subscript&, float)>& value) {
  problem.inputs[name] = mapped(problem.input(name), value);
}

float zero(const Subscript&, float) {
  return 0.0F;
}

/// y of the problem with x contiguous, as every changed x is: for another layout a variant may take another
/// path, with other roundings, so that only results for the same layout can be asked for the same bits.
Tensor y_of_contiguous_x(const RelationInput& in) {
  const Tensor& x = in.problem.input("x");
  const Tensor contiguous = mapped(x, [](const Subscript&, float value) { return value; });
  if (x.stride == contiguous.stride && x.offset == contiguous.offset) return in.outputs.at("y");
  Problem problem = in.problem;
  problem.inputs["x"] = contiguous;
  return run_on(in.variant, problem).at("y");
}

/// |actual - expected| <= allowed for every element whose allowance is finite; else where and by how much, in
/// words.
std::string first_beyond(const std::string& name, const Tensor& actual, const std::vector<double>& expected,
                         const std::vector<double>& allowed) {
  const std::vector<float> values = actual.values();
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (!(allowed[e] < infinity) || std::abs(double(values[e]) - expected[e]) <= allowed[e]) continue;
    return fmt::format("{}[{}] is {:.9g}, expected {:.9g} within {:.3g}", name,
                       fmt::join(subscripts(actual.shape, static_cast<Index>(e)), ","), values[e],
                       expected[e], allowed[e]);
  }
  return {};
}

/// Values of a [B,H,W,D] tensor in C order, each taken from the place `from(subscripts)` of a tensor of shape
/// `shape`.
std::vector<double> rearranged(const std::vector<double>& values, const std::vector<Index>& shape,
                               const std::vector<Index>& result_shape,
                               const std::function<Subscript(const Subscript&)>& from) {
  std::vector<double> result;
  result.reserve(values.size());
  for_each_subscript(result_shape, [&](const Subscript& to) {
    const Subscript at = from(to);
    result.push_back(values[((at[0] * shape[1] + at[1]) * shape[2] + at[2]) * shape[3] + at[3]]);
  });
  return result;
}

// W_out = 0 and b_out = 0: x + (0·o + 0) = x in every bit (but the sign of zero).
Result zero_projection(const RelationInput& in) {
  Problem problem = in.problem;
  for (const std::string& pass : passes_of(problem)) {
    change(problem, pass + "_out.weight", zero);
    change(problem, pass + "_out.bias", zero);
  }
  if (in.variant.declines(problem))
    return Result::not_applicable("the problem without projection is declined");
  const Outputs outputs = run_on(in.variant, problem);
  return equal_or_broken("W_out = 0, b_out = 0", first_unequal("y", outputs.at("y"), problem.input("x")));
}

// W_qkv = 0: every V is 0, so o = 0 exactly and each pass adds b_out with one rounding.
Result zero_qkv(const RelationInput& in) {
  Problem problem = in.problem;
  Tensor wanted = mapped(problem.input("x"), [](const Subscript&, float value) { return value; });
  for (const std::string& pass : passes_of(problem)) {
    change(problem, pass + "_qkv.weight", zero);
    const std::vector<float> bias = problem.input(pass + "_out.bias").values();
    wanted = mapped(wanted, [&bias](const Subscript& at, float value) { return value + bias[at[3]]; });
  }
  if (in.variant.declines(problem)) return Result::not_applicable("the problem with W_qkv = 0 is declined");
  const Outputs outputs = run_on(in.variant, problem);
  return equal_or_broken("W_qkv = 0", first_unequal("y", outputs.at("y"), wanted));
}

// (4 q)·(k / 4) = q·k and (W_out / 2)(2 v) = W_out v in every bit: rounding does not see the exponent.
Result power_of_two(const RelationInput& in) {
  Problem problem = in.problem;
  const Index D = problem.input("x").shape[3];
  for (const std::string& pass : passes_of(problem)) {
    for (const std::string weight : {"_qkv.weight", "_out.weight"})
      for (const float value : problem.input(pass + weight).values())
        if (value != 0 && !(std::abs(value) > 0x1p-40F && std::abs(value) < 0x1p40F))
          return Result::not_applicable("weights come near the limits of float32");
    change(problem, pass + "_qkv.weight", [D](const Subscript& at, float value) {
      return at[0] < D ? 4 * value : at[0] < 2 * D ? value / 4 : 2 * value;
    });
    change(problem, pass + "_out.weight", [](const Subscript&, float value) { return value / 2; });
  }
  if (in.variant.declines(problem)) return Result::not_applicable("the scaled problem is declined");
  const Outputs outputs = run_on(in.variant, problem);
  return equal_or_broken("4·W_q, W_k/4, 2·W_v, W_out/2",
                         first_unequal("y", outputs.at("y"), in.outputs.at("y")));
}

// Batches, and within one pass the sequences of a batch, do not know each other.
Result permuted_sequences(const RelationInput& in) {
  const std::vector<Index>& shape = in.problem.input("x").shape;
  std::vector<std::pair<int, std::string>> independent{{0, "batches"}};
  if (in.problem.attributes.passes == AxialPasses::row) independent.emplace_back(1, "rows");
  if (in.problem.attributes.passes == AxialPasses::col) independent.emplace_back(2, "columns");
  std::erase_if(independent, [&](const auto& one) { return shape[one.first] < 2; });
  if (independent.empty()) return Result::not_applicable("one sequence");
  const Tensor y = y_of_contiguous_x(in);
  for (const auto& [dimension, what] : independent) {
    Problem problem = in.problem;
    problem.inputs["x"] = backwards(in.problem.input("x"), dimension);
    const Outputs outputs = run_on(in.variant, problem);
    const std::string difference = first_unequal("y", outputs.at("y"), backwards(y, dimension));
    if (!difference.empty()) return Result::broken(what + " in reverse order: " + difference);
  }
  return Result::holds();
}

// Attention has no order of tokens: reversed along both axes, y is reversed, up to the rounding of the sums.
Result permuted_tokens(const RelationInput& in) {
  Problem problem = in.problem;
  problem.inputs["x"] = backwards(backwards(in.problem.input("x"), 1), 2);
  const Outputs outputs = run_on(in.variant, problem);
  const std::vector<Index>& shape = in.problem.input("x").shape;
  const std::vector<double> expected =
      rearranged(in.oracle.expected("y"), shape, shape, [&](const Subscript& at) {
        return Subscript{at[0], shape[1] - 1 - at[1], shape[2] - 1 - at[2], at[3]};
      });
  const AxialBound bound = axial_bound(axial_view(problem), in.variant.arithmetic);
  return equal_or_broken("tokens in reverse order", first_beyond("y", outputs.at("y"), expected, bound.y));
}

// A column pass over xᵀ is the transposed row pass over x with the same parameters, and the other way round.
Result transposed(const RelationInput& in) {
  const bool from_row = in.problem.attributes.passes != AxialPasses::col;
  const std::string output = in.problem.attributes.passes == AxialPasses::both ? "row" : "y";
  const std::string from = from_row ? "row" : "col";
  const std::string to = from_row ? "col" : "row";

  Problem problem;
  problem.operation = Operation::axial;
  problem.attributes = in.problem.attributes;
  problem.attributes.passes = from_row ? AxialPasses::col : AxialPasses::row;
  for (const auto& [name, tensor] : in.problem.inputs)
    if (name.starts_with(from + "_")) problem.inputs[to + name.substr(3)] = tensor;
  Tensor x = in.problem.input("x");
  std::swap(x.shape[1], x.shape[2]);
  std::swap(x.stride[1], x.stride[2]);
  problem.inputs["x"] = x;
  if (in.variant.declines(problem)) return Result::not_applicable("the transposed problem is declined");

  const Outputs outputs = run_on(in.variant, problem);
  const std::vector<Index>& shape = in.problem.input("x").shape;
  const auto swapped = [](const Subscript& at) { return Subscript{at[0], at[2], at[1], at[3]}; };
  const std::vector<double> expected = rearranged(in.oracle.expected(output), shape, x.shape, swapped);
  const std::vector<double> allowed =
      rearranged(in.oracle.proved(output, in.variant.arithmetic), shape, x.shape, swapped);
  return equal_or_broken(fmt::format("{} pass over the transposed x", to),
                         first_beyond("y", outputs.at("y"), expected, allowed));
}

// Weights of a softmax add up to 1, so a V that is the same for every token comes back as it is: W_v reads
// only a channel that LayerNorm is told to set to 1, and the pass adds W_out W_v + b_out to every token,
// whatever Q and K are.
Result constant_v(const RelationInput& in) {
  const std::string pass = passes_of(in.problem).front();
  Problem problem = in.problem;
  problem.attributes.passes = pass == "row" ? AxialPasses::row : AxialPasses::col;
  std::erase_if(problem.inputs, [&](const auto& input) {
    return input.first != "x" && !input.first.starts_with(pass + "_");
  });
  const Index D = problem.input("x").shape[3];
  const Index channel = place(in.seed, 1, D);
  change(problem, pass + "_norm.weight",
         [&](const Subscript& at, float value) { return at[0] == channel ? 0.0F : value; });
  change(problem, pass + "_norm.bias",
         [&](const Subscript& at, float value) { return at[0] == channel ? 1.0F : value; });
  change(problem, pass + "_qkv.weight",
         [&](const Subscript& at, float value) { return at[0] >= 2 * D && at[1] != channel ? 0.0F : value; });
  if (in.variant.declines(problem))
    return Result::not_applicable("the problem with a constant V is declined");

  const axial::Weights<double> weights =
      axial::load<double>(pass == "row" ? axial_view(problem).row : axial_view(problem).col);
  const axial::RowVector<double> value = weights.qkv.col(channel).tail(D).transpose();
  const axial::RowVector<double> update = value * weights.out.transpose() + weights.out_bias;
  std::vector<double> expected;
  const std::vector<float> x = problem.input("x").values();
  for (std::size_t e = 0; e < x.size(); ++e)
    expected.push_back(double(x[e]) + update(static_cast<Index>(e) % D));
  const Outputs outputs = run_on(in.variant, problem);
  const AxialBound bound = axial_bound(axial_view(problem), in.variant.arithmetic);
  return equal_or_broken(fmt::format("V of the {} pass made constant", pass),
                         first_beyond("y", outputs.at("y"), expected, bound.y));
}

/// Largest |logit| of the first pass that runs.
double largest_logit(const Problem& problem) {
  const AxialProblem view = axial_view(problem);
  const bool along_rows = view.passes != AxialPasses::col;
  const axial::Weights<double> weights = axial::load<double>(along_rows ? view.row : view.col);
  const axial::Matrix<double> x = axial::load<double>(view.x);
  const axial::Matrix<double> n = axial::layer_norm<double>(x, weights, view.eps);
  const Index D = x.cols();
  const Index d = D / view.heads;
  const axial::Matrix<double> qk = n * weights.qkv.topRows(2 * D).transpose();
  double largest = 0;
  const axial::Sequences sequences(view, along_rows);
  for (Index s = 0; s < sequences.count(); ++s) {
    const auto tokens = Eigen::seqN(sequences[s].first, sequences[s].length, sequences[s].step);
    for (Index head = 0; head < view.heads; ++head) {
      const axial::Matrix<double> Q = qk(tokens, Eigen::seqN(head * d, d));
      const axial::Matrix<double> K = qk(tokens, Eigen::seqN(D + head * d, d));
      largest =
          std::max(largest, (Q * K.transpose()).cwiseAbs().maxCoeff() / std::sqrt(static_cast<double>(d)));
    }
  }
  return largest;
}

// Softmax does not change when all logits move together, so their size alone never overflows: with W_q scaled
// to logits of 200 or 1e5, of either sign, every output stays finite, and a mean of V.
Result large_logits(const RelationInput& in) {
  const double largest = largest_logit(in.problem);
  if (!(largest > 1e-6 && largest < 1e3))
    return Result::not_applicable("the logits leave no room for scaling");
  const double wanted = place(in.seed, 2, 2) == 0 ? 200 : 1e5;
  const double sign = place(in.seed, 3, 2) == 0 ? 1 : -1;
  const auto scale = static_cast<float>(sign * wanted / largest);
  const Index D = in.problem.input("x").shape[3];
  Problem problem = in.problem;
  const std::string pass = passes_of(problem).front();
  change(problem, pass + "_qkv.weight",
         [&](const Subscript& at, float value) { return at[0] < D ? scale * value : value; });
  if (in.variant.declines(problem))
    return Result::not_applicable("the problem with large logits is declined");
  const Outputs outputs = run_on(in.variant, problem);
  const std::vector<float> y = outputs.at("y").values();
  for (std::size_t e = 0; e < y.size(); ++e)
    if (!std::isfinite(y[e]))
      return Result::broken(
          fmt::format("logits scaled to {:g}: y[{}] is {}", sign * wanted,
                      fmt::join(subscripts(outputs.at("y").shape, static_cast<Index>(e)), ","), y[e]));
  const std::string difference = [&]() -> std::string {
    AxialProblem view = axial_view(problem);
    const AxialBound bound = axial_bound(view, in.variant.arithmetic);
    std::vector<double> expected(y.size());
    axial::unfused<double>(view, {contiguous_view<double, 4>(expected.data(), view.x.shape), std::nullopt});
    return first_beyond("y", outputs.at("y"), expected, bound.y);
  }();
  return equal_or_broken(fmt::format("logits scaled to {:g}", sign * wanted), difference);
}

// LayerNorm subtracts the mean, so x + c gives y + c. On multiples of 2^-12 below 2^10 a shift by 8 is exact.
Result shifted_input(const RelationInput& in) {
  for (const float value : in.problem.input("x").values())
    if (!(std::abs(value) < 1000)) return Result::not_applicable("x is too large for an exact shift");
  constexpr float shift = 8;
  Problem before = in.problem;
  change(before, "x", [](const Subscript&, float value) { return std::rint(value * 0x1p12F) * 0x1p-12F; });
  Problem after = before;
  change(after, "x", [](const Subscript&, float value) { return value + shift; });
  if (in.variant.declines(before) || in.variant.declines(after))
    return Result::not_applicable("a shifted problem is declined");
  const Outputs outputs = run_on(in.variant, after);
  const std::vector<float> y = run_on(in.variant, before).at("y").values();
  const AxialBound bound_before = axial_bound(axial_view(before), in.variant.arithmetic);
  const AxialBound bound_after = axial_bound(axial_view(after), in.variant.arithmetic);
  std::vector<double> expected(y.begin(), y.end());
  std::vector<double> allowed(y.size());
  for (std::size_t e = 0; e < y.size(); ++e) {
    expected[e] += shift;
    allowed[e] = bound_before.y[e] + bound_after.y[e];
  }
  return equal_or_broken("x + 8", first_beyond("y", outputs.at("y"), expected, allowed));
}

// A non-finite token makes its sequence non-finite, for every query sees every key, and nothing else: other
// rows (of a row pass), columns (of a column pass) and batches keep every bit.
Result non_finite(const RelationInput& in) {
  const std::vector<Index>& shape = in.problem.input("x").shape;
  const Subscript poisoned{place(in.seed, 4, shape[0]), place(in.seed, 5, shape[1]),
                           place(in.seed, 6, shape[2]), place(in.seed, 7, shape[3])};
  const float poison = place(in.seed, 8, 3) == 0 ? infinity : std::numeric_limits<float>::quiet_NaN();
  Problem problem = in.problem;
  change(problem, "x", [&](const Subscript& at, float value) { return at == poisoned ? poison : value; });
  if (in.variant.declines(problem)) return Result::not_applicable("the poisoned problem is declined");
  const Outputs outputs = run_on(in.variant, problem);
  const AxialPasses passes = in.problem.attributes.passes;
  const std::vector<float> actual = outputs.at("y").values();
  const std::vector<float> clean = y_of_contiguous_x(in).values();
  for (std::size_t e = 0; e < actual.size(); ++e) {
    const Subscript at = subscripts(shape, static_cast<Index>(e));
    const bool depends = at[0] == poisoned[0] && (passes != AxialPasses::row || at[1] == poisoned[1]) &&
                         (passes != AxialPasses::col || at[2] == poisoned[2]);
    if (depends && std::isfinite(actual[e]))
      return Result::broken(fmt::format("x[{}] set to {}: y[{}] depends on it but is {:.9g}",
                                        fmt::join(poisoned, ","), poison, fmt::join(at, ","), actual[e]));
    if (!depends && !same_bits(actual[e], clean[e]))
      return Result::broken(fmt::format("x[{}] set to {} leaked: y[{}] is {:.9g}, before {:.9g}",
                                        fmt::join(poisoned, ","), poison, fmt::join(at, ","), actual[e],
                                        clean[e]));
  }
  return Result::holds();
}

// Asked for the result of the row pass too, a variant gives the same y, a right row, and the column pass of
// that row.
Result row_output(const RelationInput& in) {
  if (in.problem.attributes.passes != AxialPasses::both) return Result::not_applicable("one pass");
  Outputs outputs = make_outputs(in.problem, true);
  in.variant.run(in.problem, outputs);
  const std::string difference = first_unequal("y", outputs.at("y"), in.outputs.at("y"));
  if (!difference.empty()) return Result::broken("with row asked for: " + difference);
  const Verdict verdict =
      judge_outputs(in.problem, in.oracle, outputs, in.variant.arithmetic, Limits::proved_only);
  if (verdict.outcome != Outcome::fail) return Result::holds();
  return Result::broken(fmt::format("{}[{}] is {:.9g}, expected {:.9g} within {:.3g}", verdict.worst.tensor,
                                    fmt::join(verdict.worst.index, ","), verdict.worst.actual,
                                    verdict.worst.expected, verdict.worst.bound));
}

}  // namespace

std::vector<Relation> axial_relations() {
  const auto relation = [](std::string name, std::string identity,
                           RelationResult (*check)(const RelationInput&)) {
    return Relation{Operation::axial, std::move(name), std::move(identity), check};
  };
  return {
      relation("zero_projection", "W_out = 0, b_out = 0: y = x, bit for bit", zero_projection),
      relation("zero_qkv", "W_qkv = 0: y = x + b_out, bit for bit", zero_qkv),
      relation("power_of_two", "powers of two between Q and K, V and W_out cancel, bit for bit",
               power_of_two),
      relation("permuted_sequences", "batches and parallel sequences are independent, bit for bit",
               permuted_sequences),
      relation("permuted_tokens", "attention has no order of tokens", permuted_tokens),
      relation("transposed", "col(x) = row(x^T)^T with the same parameters", transposed),
      relation("constant_v", "softmax of anything times a constant V is that V", constant_v),
      relation("large_logits", "logits of +-200 and +-1e5 overflow nothing", large_logits),
      relation("shifted_input", "x + c gives y + c", shifted_input),
      relation("non_finite", "a non-finite token reaches its sequence and nothing else", non_finite),
      relation("row_output", "y is the column pass of row", row_output),
  };
}

}  // namespace gaugeblock
