#include "gaugeblock/verify/relations/recurrence_relations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {
namespace {

using Result = RelationResult;

struct Sizes {
  Index B, T, H, K, V;
};

Sizes sizes_of(const Problem& problem) {
  const RecurrenceProblem view = recurrence_view(problem);
  return {view.batches(), view.steps(), view.heads(), view.key_size(), view.value_size()};
}

Result equal_or_broken(const std::string& difference) {
  return difference.empty() ? Result::holds() : Result::broken(difference);
}

/// |x| of the smallest and largest nonzero magnitude a product of inputs can take: how far from underflow and
/// overflow.
struct Magnitudes {
  double smallest = 1;
  double largest = 1;
  void include(const Tensor& tensor) {
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    for (const float value : tensor.values()) {
      if (value == 0) continue;
      low = std::min(low, std::abs(double(value)));
      high = std::max(high, std::abs(double(value)));
    }
    if (high == 0) return;
    smallest *= std::min(1.0, low);
    largest *= std::max(1.0, high);
  }
};

/// The smallest and largest |Π gate| over windows of nonzero gates, of all (b,h).
Magnitudes window_magnitudes(const Problem& problem) {
  const RecurrenceProblem view = recurrence_view(problem);
  Magnitudes result;
  for (Index b = 0; b < view.batches(); ++b)
    for (Index h = 0; h < view.heads(); ++h) {
      double low = 1;
      double high = 1;
      for (Index t = 0; t < view.steps(); ++t) {
        const double gate = std::abs(double(view.gate(b, t, h)));
        low = gate == 0 ? 1 : std::min(1.0, low * gate);
        high = std::max(1.0, high * gate);
        result.smallest = std::min(result.smallest, low);
        result.largest = std::max(result.largest, high);
      }
    }
  return result;
}

// 2^c · (q S) = q (2^c S) in every bit while nothing leaves the normal range: rounding does not see the
// exponent.
Result power_of_two(const RelationInput& in) {
  Magnitudes range = window_magnitudes(in.problem);
  for (const char* input : {"q", "k", "v", "beta"}) range.include(in.problem.input(input));
  if (in.problem.inputs.contains("initial_state")) range.include(in.problem.input("initial_state"));
  // 24 bits of cancellation may come on top of the smallest product, twice.
  if (!(range.smallest > 0x1p-50 && range.largest < 0x1p50))
    return Result::not_applicable("products come near the limits of float32");
  const float scale = place(in.seed, 1, 2) == 0 ? 8.0F : 0.25F;
  const auto scaled = [scale](const std::vector<Index>&, float value) { return scale * value; };
  Problem problem = in.problem;
  problem.inputs["v"] = mapped(in.problem.input("v"), scaled);
  if (problem.inputs.contains("initial_state"))
    problem.inputs["initial_state"] = mapped(in.problem.input("initial_state"), scaled);
  if (in.variant.declines(problem)) return Result::not_applicable("the scaled problem is declined");
  const Outputs outputs = run_on(in.variant, problem);
  for (const auto& [name, tensor] : outputs)
    if (const std::string difference = first_unequal(name, tensor, mapped(in.outputs.at(name), scaled));
        !difference.empty())
      return Result::broken(fmt::format("v scaled by {:g}: {}", scale, difference));
  return Result::holds();
}

// The recurrence is linear in (v, S_0), and rounding to nearest is odd: -v gives -y in every bit (zeros
// apart).
Result sign_of_v(const RelationInput& in) {
  const auto negated = [](const std::vector<Index>&, float value) { return -value; };
  Problem problem = in.problem;
  problem.inputs["v"] = mapped(in.problem.input("v"), negated);
  if (problem.inputs.contains("initial_state"))
    problem.inputs["initial_state"] = mapped(in.problem.input("initial_state"), negated);
  const Outputs outputs = run_on(in.variant, problem);
  for (const auto& [name, tensor] : outputs)
    if (const std::string difference = first_unequal(name, tensor, mapped(in.outputs.at(name), negated));
        !difference.empty())
      return Result::broken("v negated: " + difference);
  return Result::holds();
}

/// Reverses the dimension named by `dimension_of` in every tensor that has it and compares the outputs bit
/// for bit.
Result permuted(const RelationInput& in, const std::map<std::string, int>& dimension_of,
                const std::string& what) {
  Problem problem = in.problem;
  for (auto& [name, tensor] : problem.inputs)
    if (dimension_of.contains(name)) tensor = backwards(in.problem.input(name), dimension_of.at(name));
  const Outputs outputs = run_on(in.variant, problem);
  for (const auto& [name, tensor] : outputs)
    if (const std::string difference =
            first_unequal(name, tensor, backwards(in.outputs.at(name), dimension_of.at(name)));
        !difference.empty())
      return Result::broken(what + " in reverse order: " + difference);
  return Result::holds();
}

// Batches do not know each other: in reverse order they give the same outputs in reverse order.
Result permuted_batches(const RelationInput& in) {
  if (sizes_of(in.problem).B < 2) return Result::not_applicable("one batch");
  return permuted(in,
                  {{"q", 0},
                   {"k", 0},
                   {"v", 0},
                   {"gate", 0},
                   {"beta", 0},
                   {"initial_state", 0},
                   {"y", 0},
                   {"final_state", 0}},
                  "batches");
}

// Heads do not know each other.
Result permuted_heads(const RelationInput& in) {
  if (sizes_of(in.problem).H < 2) return Result::not_applicable("one head");
  return permuted(in,
                  {{"q", 2},
                   {"k", 2},
                   {"v", 2},
                   {"gate", 2},
                   {"beta", 2},
                   {"initial_state", 1},
                   {"y", 2},
                   {"final_state", 1}},
                  "heads");
}

// Columns of v (and of the state) do not know each other.
Result permuted_columns(const RelationInput& in) {
  if (!in.variant.promises.columns) return Result::not_applicable("not promised");
  if (sizes_of(in.problem).V < 2) return Result::not_applicable("one column");
  return permuted(in, {{"v", 3}, {"initial_state", 3}, {"y", 3}, {"final_state", 3}}, "columns of v");
}

/// The problem with every input of step `first` and later replaced.
Problem with_other_future(const Problem& original, Index first) {
  Problem problem = original;
  for (const char* input : {"q", "k", "v", "gate", "beta"})
    problem.inputs[input] = mapped(original.input(input), [first](const std::vector<Index>& at, float value) {
      return at[1] < first ? value : 0.5F - 0.25F * value;
    });
  return problem;
}

// y_t depends on the steps up to t only: another future leaves every bit of it alone.
Result no_future(const RelationInput& in) {
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 2) return Result::not_applicable("fewer than two steps");
  const Index first = 1 + place(in.seed, 2, sizes.T - 1);
  const Problem problem = with_other_future(in.problem, first);
  if (in.variant.declines(problem))
    return Result::not_applicable("the problem with another future is declined");
  const Outputs outputs = run_on(in.variant, problem);
  const std::string difference =
      first_unequal("y", sliced(outputs.at("y"), 1, 0, first), sliced(in.outputs.at("y"), 1, 0, first));
  return difference.empty()
             ? Result::holds()
             : Result::broken(fmt::format("inputs from t={} on were changed: {}", first, difference));
}

/// The steps [first, last) of the problem; the initial state stays.
Problem steps_of(const Problem& original, Index first, Index last) {
  Problem problem = original;
  for (const char* input : {"q", "k", "v", "gate", "beta"})
    problem.inputs[input] = sliced(original.input(input), 1, first, last);
  return problem;
}

// Cutting the sequence after t leaves y_0 … y_t as they were.
Result equal_prefix(const RelationInput& in) {
  if (!in.variant.promises.prefix) return Result::not_applicable("not promised");
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 2) return Result::not_applicable("fewer than two steps");
  const Index last = 1 + place(in.seed, 3, sizes.T - 1);
  const Outputs outputs = run_on(in.variant, steps_of(in.problem, 0, last));
  const std::string difference = first_unequal("y", outputs.at("y"), sliced(in.outputs.at("y"), 1, 0, last));
  return difference.empty() ? Result::holds()
                            : Result::broken(fmt::format("cut to T={}: {}", last, difference));
}

// S_T is reached in one go or by way of S_t: two runs with the state handed over are one run. Bit for bit
// where promised; otherwise each half must be right by itself, the second as a problem with the first's final
// state.
Result split(const RelationInput& in) {
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 2) return Result::not_applicable("fewer than two steps");
  const Index middle = 1 + place(in.seed, 4, sizes.T - 1);
  const Problem first = steps_of(in.problem, 0, middle);
  if (in.variant.declines(first)) return Result::not_applicable("the first part is declined");
  const Outputs first_outputs = run_on(in.variant, first);
  Problem second = steps_of(in.problem, middle, sizes.T);
  second.inputs["initial_state"] = first_outputs.at("final_state");
  for (const float value : second.input("initial_state").values())
    if (!std::isfinite(value)) return Result::not_applicable("the state in the middle is not finite");
  if (in.variant.declines(second)) return Result::not_applicable("the second part is declined");
  const Outputs second_outputs = run_on(in.variant, second);
  if (!in.variant.promises.split) {
    second.case_text += " (second part)";
    const Verdict verdict = judge_outputs(second, in.derived.of(second), second_outputs,
                                          in.variant.arithmetic, Limits::proved_only);
    if (verdict.outcome != Outcome::fail) return Result::holds();
    return Result::broken(
        fmt::format("split at t={}: {}[{}] of the second part is {:.9g}, expected {:.9g} within {:.3g}",
                    middle, verdict.worst.tensor, fmt::join(verdict.worst.index, ","), verdict.worst.actual,
                    verdict.worst.expected, verdict.worst.bound));
  }
  std::string difference =
      first_unequal("y", second_outputs.at("y"), sliced(in.outputs.at("y"), 1, middle, sizes.T));
  if (difference.empty())
    difference = first_unequal("final_state", second_outputs.at("final_state"), in.outputs.at("final_state"));
  return difference.empty() ? Result::holds()
                            : Result::broken(fmt::format("split at t={} with the state carried over: {}",
                                                         middle, difference));
}

// Integers below 2^24 are exact in float32: with small integers everywhere nothing is rounded, so every form
// without a division must give the exact result.
Result exact_integers(const RelationInput& in) {
  if (in.variant.arithmetic.form.starts_with("prefix_product"))
    return Result::not_applicable("the form divides");
  double largest_intermediate = 1;
  for (const auto& [name, tensor] : in.problem.inputs) {
    double largest = 1;
    for (const float value : tensor.values()) {
      if (value != std::rint(value)) return Result::not_applicable("inputs are not integers");
      largest = std::max(largest, std::abs(double(value)));
    }
    if (name != "gate") largest_intermediate *= largest;
  }
  const Sizes sizes = sizes_of(in.problem);
  largest_intermediate *= window_magnitudes(in.problem).largest * double(sizes.T + 1) * double(sizes.K);
  if (!(largest_intermediate < 0x1p24)) return Result::not_applicable("integers may pass 2^24");
  for (const auto& [name, tensor] : in.outputs) {
    const std::vector<double>& expected = in.oracle.expected(name);
    const std::vector<float> actual = tensor.values();
    for (std::size_t e = 0; e < actual.size(); ++e)
      if (!(double(actual[e]) == expected[e]))
        return Result::broken(fmt::format("{}[{}] is {:.9g}, exactly {:.9g} without any rounding", name,
                                          fmt::join(subscripts(tensor.shape, static_cast<Index>(e)), ","),
                                          actual[e], expected[e]));
  }
  return Result::holds();
}

// gate = 1 everywhere: the state is the plain cumulative sum of the writes. Summed here without the
// reference.
Result gate_one_sums(const RelationInput& in) {
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 1) return Result::not_applicable("no steps");
  Problem problem = in.problem;
  problem.inputs["gate"] =
      mapped(in.problem.input("gate"), [](const std::vector<Index>&, float) { return 1.0F; });
  problem.case_text += " (gates set to 1)";
  if (in.variant.declines(problem)) return Result::not_applicable("the problem with gates of 1 is declined");
  const Outputs outputs = run_on(in.variant, problem);
  const std::vector<double>& bound = in.derived.of(problem).proved("final_state", in.variant.arithmetic);
  const RecurrenceProblem view = recurrence_view(problem);
  const std::vector<float> actual = outputs.at("final_state").values();
  for (std::size_t e = 0; e < actual.size(); ++e) {
    const std::vector<Index> at = subscripts(outputs.at("final_state").shape, static_cast<Index>(e));
    const Index b = at[0], h = at[1], i = at[2], j = at[3];
    long double sum = view.initial_state ? static_cast<long double>((*view.initial_state)(b, h, i, j)) : 0.0L;
    for (Index t = 0; t < sizes.T; ++t)
      sum += static_cast<long double>(view.beta(b, t, h)) * view.k(b, t, h, i) * view.v(b, t, h, j);
    // The bound already holds room for the error of a long double sum of this length.
    if (bound[e] < std::numeric_limits<double>::infinity() &&
        !(std::abs(double(actual[e] - sum)) <= bound[e]))
      return Result::broken(
          fmt::format("gates set to 1: final_state[{}] is {:.9g}, the plain sum of the writes is {:.9g}",
                      fmt::join(at, ","), actual[e], double(sum)));
  }
  return Result::holds();
}

// gate_t = 0 forgets everything before t: from t on the outputs are those of a run that starts at t without a
// state.
Result gate_zero_restarts(const RelationInput& in) {
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 2) return Result::not_applicable("fewer than two steps");
  const Index start = 1 + place(in.seed, 5, sizes.T - 1);
  Problem whole = in.problem;
  whole.inputs["gate"] = mapped(in.problem.input("gate"), [start](const std::vector<Index>& at, float value) {
    return at[1] == start ? 0.0F : value;
  });
  whole.case_text += " (one gate set to 0)";
  Problem rest = steps_of(in.problem, start, sizes.T);
  rest.inputs.erase("initial_state");
  rest.case_text += " (from there on)";
  if (in.variant.declines(whole) || in.variant.declines(rest))
    return Result::not_applicable("a problem with a gate of 0 is declined");
  const Outputs whole_outputs = run_on(in.variant, whole);
  const Outputs rest_outputs = run_on(in.variant, rest);
  const std::vector<double>& whole_bound = in.derived.of(whole).proved("y", in.variant.arithmetic);
  const std::vector<double>& rest_bound = in.derived.of(rest).proved("y", in.variant.arithmetic);
  const std::vector<float> whole_y = whole_outputs.at("y").values();
  const std::vector<float> rest_y = rest_outputs.at("y").values();
  const std::vector<Index>& shape = rest_outputs.at("y").shape;
  for (std::size_t e = 0; e < rest_y.size(); ++e) {
    const std::vector<Index> at = subscripts(shape, static_cast<Index>(e));
    const Index in_whole = ((at[0] * sizes.T + at[1] + start) * sizes.H + at[2]) * sizes.V + at[3];
    const double allowed = whole_bound[in_whole] + rest_bound[e];
    if (allowed < std::numeric_limits<double>::infinity() &&
        !(std::abs(double(whole_y[in_whole]) - double(rest_y[e])) <= allowed))
      return Result::broken(
          fmt::format("gate set to 0 at t={}: y[{},{},{},{}] is {:.9g}, a run from there gives {:.9g}", start,
                      at[0], at[1] + start, at[2], at[3], whole_y[in_whole], rest_y[e]));
  }
  return Result::holds();
}

// A non-finite input reaches exactly what depends on it: everything else stays within its bound, and what
// depends on it is non-finite as well.
Result non_finite(const RelationInput& in) {
  const Sizes sizes = sizes_of(in.problem);
  if (sizes.T < 1) return Result::not_applicable("no steps");
  static const std::vector<std::string> names{"q", "k", "v", "gate", "beta"};
  const std::string& name = names[place(in.seed, 6, static_cast<Index>(names.size()))];
  const Index b = place(in.seed, 7, sizes.B);
  const Index t = place(in.seed, 8, sizes.T);
  const Index h = place(in.seed, 9, sizes.H);
  const Index i = place(in.seed, 10, name == "v" ? sizes.V : sizes.K);
  const float poisoned = place(in.seed, 11, 3) == 0 ? std::numeric_limits<float>::infinity()
                                                    : std::numeric_limits<float>::quiet_NaN();
  // An infinity stays infinite or cancels to NaN; it never becomes finite without a division or a mask.
  const bool is_row = name == "gate" || name == "beta";
  Problem problem = in.problem;
  problem.inputs[name] = mapped(in.problem.input(name), [&](const std::vector<Index>& at, float value) {
    return at[0] == b && at[1] == t && at[2] == h && (is_row || at[3] == i) ? poisoned : value;
  });
  if (in.variant.declines(problem)) return Result::not_applicable("the poisoned problem is declined");
  const Outputs outputs = run_on(in.variant, problem);

  // The first gate multiplies nothing when there is no initial state: a form may use it or not.
  const bool multiplies_nothing = name == "gate" && t == 0 && !in.problem.inputs.contains("initial_state");
  // A later gate of 0 may hide the past where the variant says that it masks.
  const RecurrenceProblem view = recurrence_view(in.problem);
  for (const auto& [output, tensor] : outputs) {
    const std::vector<float> actual = tensor.values();
    const std::vector<double>& expected = in.oracle.expected(output);
    const std::vector<double>& bound = in.oracle.proved(output, in.variant.arithmetic);
    for (std::size_t e = 0; e < actual.size(); ++e) {
      const std::vector<Index> at = subscripts(tensor.shape, static_cast<Index>(e));
      const bool is_y = output == "y";
      const Index head = is_y ? at[2] : at[1];
      bool depends = at[0] == b && head == h;
      if (is_y) {
        depends = depends && (name == "q" ? at[1] == t : at[1] >= t);
        if (name == "v") depends = depends && at[3] == i;
      } else {
        depends = depends && name != "q";
        if (name == "k") depends = depends && at[2] == i;
        if (name == "v") depends = depends && at[3] == i;
      }
      if (depends) {
        bool hidden = multiplies_nothing;
        if (in.variant.promises.masks_reset)
          for (Index later = t + 1; later <= (is_y ? at[1] : sizes.T - 1); ++later)
            hidden = hidden || view.gate(b, later, h) == 0;
        if (std::isfinite(actual[e]) && !hidden)
          return Result::broken(fmt::format("{}[{},{},{}{}] set to {}: {}[{}] depends on it but is {:.9g}",
                                            name, b, t, h, is_row ? "" : fmt::format(",{}", i), poisoned,
                                            output, fmt::join(at, ","), actual[e]));
      } else if (bound[e] < std::numeric_limits<double>::infinity() &&
                 !(std::abs(double(actual[e]) - expected[e]) <= bound[e])) {
        return Result::broken(
            fmt::format("{}[{},{},{}{}] set to {} leaked: {}[{}] is {:.9g}, expected {:.9g}", name, b, t, h,
                        is_row ? "" : fmt::format(",{}", i), poisoned, output, fmt::join(at, ","), actual[e],
                        expected[e]));
      }
    }
  }
  return Result::holds();
}

// Without a step nothing is computed: the final state is the initial state, bit for bit.
Result empty_sequence(const RelationInput& in) {
  const Problem problem = steps_of(in.problem, 0, 0);
  if (in.variant.declines(problem)) return Result::not_applicable("the empty sequence is declined");
  const Outputs outputs = run_on(in.variant, problem);
  Tensor wanted = Tensor::contiguous(outputs.at("final_state").shape);
  wanted.assign(problem.inputs.contains("initial_state") ? problem.input("initial_state").values()
                                                         : std::vector<float>(wanted.size(), 0.0F));
  return equal_or_broken(first_unequal("final_state", outputs.at("final_state"), wanted));
}

// The same source on the interpreter gives the same bits.
Result interpreted_bits(const RelationInput& in) {
  if (!in.variant.promises.interpreted) return Result::not_applicable("not promised");
  const Sizes sizes = sizes_of(in.problem);
  constexpr Index largest_interpreted_steps = 4096;  // the interpreter is slow
  if (sizes.B * sizes.T * sizes.H * sizes.K * sizes.V > largest_interpreted_steps)
    return Result::not_applicable("too large to interpret");
  const auto twin = std::find_if(all_variants().begin(), all_variants().end(), [&in](const Variant& other) {
    return other.operation == in.variant.operation && other.name == in.variant.name &&
           other.backend == "simt";
  });
  if (twin == all_variants().end()) return Result::not_applicable("the interpreter has no such variant");
  const Outputs interpreted = run_on(*twin, in.problem);
  for (const auto& [name, tensor] : in.outputs)
    if (const std::string difference = first_unequal(name, tensor, interpreted.at(name)); !difference.empty())
      return Result::broken("interpreted: " + difference);
  return Result::holds();
}

}  // namespace

std::vector<Relation> recurrence_relations() {
  const auto relation = [](std::string name, std::string identity,
                           RelationResult (*check)(const RelationInput&)) {
    return Relation{Operation::recurrence, std::move(name), std::move(identity), check};
  };
  return {
      relation("power_of_two", "y(2^c v, 2^c S_0) = 2^c y(v, S_0), bit for bit", power_of_two),
      relation("sign_of_v", "y(-v, -S_0) = -y(v, S_0), bit for bit", sign_of_v),
      relation("permuted_batches", "batches are independent, bit for bit", permuted_batches),
      relation("permuted_heads", "heads are independent, bit for bit", permuted_heads),
      relation("permuted_columns", "columns of v are independent, bit for bit where promised",
               permuted_columns),
      relation("no_future", "y_t does not depend on inputs after t, bit for bit", no_future),
      relation("equal_prefix", "cutting the sequence keeps its beginning, bit for bit where promised",
               equal_prefix),
      relation("split", "two parts with the state carried over are the whole", split),
      relation("exact_integers", "small integers give exact results where nothing is divided",
               exact_integers),
      relation("gate_one_sums", "gate = 1: the state is the plain sum of the writes", gate_one_sums),
      relation("gate_zero_restarts", "gate_t = 0: a run that starts at t", gate_zero_restarts),
      relation("non_finite", "a non-finite input reaches what depends on it and nothing else", non_finite),
      relation("interpreted_bits", "the interpreter gives the same bits, where promised", interpreted_bits),
      relation("empty_sequence", "T = 0: the final state is the initial state", empty_sequence),
  };
}

}  // namespace gaugeblock
