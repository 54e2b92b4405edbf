#include "gaugeblock/verify/cases/axial_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/layout.h"
#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {
namespace {

constexpr std::array<std::pair<std::string_view, InputFamily>, 8> input_names{{
    {"normal", InputFamily::normal},
    {"index", InputFamily::index},
    {"uniform", InputFamily::uniform},
    {"small", InputFamily::small},
    {"large", InputFamily::large},
    {"offset", InputFamily::offset},
    {"constant", InputFamily::constant},
    {"const", InputFamily::value},
}};

constexpr std::array<std::pair<std::string_view, WeightsFamily>, 7> weights_names{{
    {"normal", WeightsFamily::normal},
    {"zero_out", WeightsFamily::zero_out},
    {"zero_qkv", WeightsFamily::zero_qkv},
    {"heads", WeightsFamily::heads},
    {"dominant", WeightsFamily::dominant},
    {"logits_200", WeightsFamily::logits_200},
    {"logits_1e5", WeightsFamily::logits_1e5},
}};

constexpr std::array<std::pair<std::string_view, Layout>, 4> layout_names{{
    {"contiguous", Layout::contiguous},
    {"padded", Layout::padded},
    {"permuted", Layout::permuted},
    {"broadcast", Layout::broadcast},
}};

template <class Names>
std::vector<std::string_view> names_in(const Names& table) {
  std::vector<std::string_view> names;
  for (const auto& [name, family] : table) names.push_back(name);
  return names;
}

template <class Names, class Family>
std::string_view name_in(const Names& table, Family family) {
  for (const auto& [name, named] : table)
    if (named == family) return name;
  return "?";
}

template <class Names, class Family>
Family chosen(const CaseFields& fields, std::string_view key, const Names& table, Family fallback) {
  const std::string_view word = fields.word(key, name_in(table, fallback));
  for (const auto& [name, family] : table)
    if (name == word) return family;
  refuse_name(key, word, names_in(table));
}

template <class Names>
auto drawn(Draw& draw, const Names& table) {
  return table[static_cast<std::size_t>(draw.between(0, static_cast<Index>(table.size()) - 1))].second;
}

// ---- values

/// x[b,h,w,i]. `token` are the random bits of the token, `element` those of the element.
float input_value(const AxialInput& input, const std::array<Index, 4>& at, const Bits& token,
                  const Bits& element) {
  switch (input.family) {
    case InputFamily::index:
      return at[3] == 0 ? static_cast<float>(10 * at[1] + at[2]) : normal(element);
    case InputFamily::uniform:
      return unit_uniform(element[0]);
    case InputFamily::small:
      return scaled(normal(element), -10);
    case InputFamily::large:
      return scaled(normal(element), 13);
    case InputFamily::offset:  // multiples of 2^-13 below 2^10: exact
      return static_cast<float>(512 + below(token[0], 512)) + small_integer(element[0], 128) * 0x1p-13F;
    case InputFamily::constant:
      return scaled(normal(token), 10);
    case InputFamily::value:
      return input.value;
    case InputFamily::normal:
      break;
  }
  return normal(element);
}

constexpr float bias_scale = 0x1p-3F;

float norm_weight_value(const AxialCase& c, const Bits& random) {
  return c.weights == WeightsFamily::logits_1e5 ? normal(random) * bias_scale
                                                : 1 + normal(random) * bias_scale;
}

float norm_bias_value(const AxialCase& c, const Bits& random) {
  return c.weights == WeightsFamily::logits_1e5 ? 1.0F : normal(random) * bias_scale;
}

/// W_qkv[o,i]; `key` are the random bits of the row of W_k that belongs to the same head and channel.
/// Divisions and square roots are correctly rounded, so the values are the same everywhere.
float qkv_value(const AxialCase& c, Index o, const Bits& random, const Bits& key) {
  const auto D = static_cast<float>(c.D);
  const bool is_query = o < c.D;
  const bool is_value = o >= 2 * c.D;
  const float plain = normal(random) / std::sqrt(D);
  switch (c.weights) {
    case WeightsFamily::zero_qkv:
      return 0.0F;
    case WeightsFamily::heads:
      return is_value ? static_cast<float>((o - 2 * c.D) / (c.D / c.heads) + 1) * plain : plain;
    case WeightsFamily::dominant:
      return is_query ? 8 * (normal(key) / std::sqrt(D)) : plain;
    case WeightsFamily::logits_200:
      return is_value ? plain : 8 * plain;
    case WeightsFamily::logits_1e5: {
      // q ≈ c in each of d channels and k ≈ -c with c² √d = 1e5; a spread of 2^-6 of that lets logits differ.
      if (is_value) return plain;
      const float size = std::sqrt(1e5F / std::sqrt(static_cast<float>(c.D / c.heads)));
      const float entry = size / D * (1 + normal(random) * 0x1p-6F);
      return is_query ? entry : -entry;
    }
    default:
      return plain;
  }
}

float out_weight_value(const AxialCase& c, const Bits& random) {
  return c.weights == WeightsFamily::zero_out ? 0.0F : normal(random) / std::sqrt(static_cast<float>(c.D));
}

float out_bias_value(const AxialCase& c, const Bits& random) {
  return c.weights == WeightsFamily::zero_out ? 0.0F : normal(random) * bias_scale;
}

// ---- layouts

Tensor laid_out(const AxialCase& c, const std::string& tensor, const std::vector<Index>& shape) {
  const Bits random = Stream(c.seed, "layout of " + tensor).at(0);
  if (c.layout == Layout::padded) {  // rows of an odd pitch, so that their starts are aligned to nothing
    std::vector<Index> wider = shape;
    wider.back() += wider.back() % 2 == 0 ? 1 : 2;
    return Tensor::strided(shape, contiguous_strides(wider, tensor), 1);
  }
  if (c.layout == Layout::permuted && shape.size() > 1)
    return Tensor::strided(shape, strides_in_order(shape, drawn_order(shape.size(), random), tensor));
  if (c.layout == Layout::permuted) return Tensor::strided(shape, {-1});  // a vector can only run backwards
  if (c.layout == Layout::broadcast && tensor == "x") {  // tokens repeat along one or two of B, H, W
    std::vector<Index> stride = contiguous_strides(shape, tensor);
    stride[below(random[0], 3)] = 0;
    if (below(random[1], 3) == 0) stride[below(random[2], 3)] = 0;
    return Tensor::strided(shape, stride);
  }
  return Tensor::contiguous(shape);
}

}  // namespace

std::string_view name(InputFamily family) {
  return name_in(input_names, family);
}
std::string_view name(WeightsFamily family) {
  return name_in(weights_names, family);
}

std::string input_text(const AxialInput& input) {
  if (input.family == InputFamily::value) return fmt::format("const:{}", float_text(input.value));
  return std::string(name(input.family));
}

AxialInput parse_input(std::string_view text) {
  constexpr std::string_view prefix = "const:";
  if (text.starts_with(prefix))
    return {InputFamily::value, parse_float(text.substr(prefix.size()), "X of x=const:X")};
  for (const auto& [name, family] : input_names)
    if (name == text && family != InputFamily::value) return {family, 0};
  std::vector<std::string_view> legal = names_in(input_names);
  legal.back() = "const:X";
  refuse_name("x", text, legal);
}

AxialCase axial_case_from(const CaseText& text) {
  static const std::vector<std::string_view> keys{"B",      "H", "W",       "D",      "heads", "eps",
                                                  "passes", "x", "weights", "layout", "seed"};
  const CaseFields fields(text, keys);
  AxialCase c;
  c.B = fields.extent("B", c.B);
  c.H = fields.extent("H", c.H);
  c.W = fields.extent("W", c.W);
  c.D = fields.extent("D", c.D);
  c.heads = fields.extent("heads", c.heads);
  if (c.D % c.heads != 0)
    throw InputError(fmt::format("heads: expected a divisor of D={}; found {}", c.D, c.heads));
  c.eps = fields.number("eps", c.eps);
  if (c.eps < 0)
    throw InputError(fmt::format("eps: expected a number that is not negative; found {}", c.eps));
  c.passes = parse_passes(fields.word("passes", name(c.passes)));
  c.x = parse_input(fields.word("x", name(c.x.family)));
  c.weights = chosen(fields, "weights", weights_names, c.weights);
  c.layout = chosen(fields, "layout", layout_names, c.layout);
  c.seed = fields.unsigned_integer("seed", c.seed);
  return c;
}

CaseText case_text(const AxialCase& c) {
  CaseText text{"axial", {}};
  text.add("B", c.B).add("H", c.H).add("W", c.W).add("D", c.D).add("heads", c.heads).add("eps", c.eps);
  text.add("passes", name(c.passes)).add("x", input_text(c.x)).add("weights", name(c.weights));
  text.add("layout", name(c.layout)).add("seed", c.seed);
  return text;
}

Problem make_problem(const AxialCase& c) {
  const auto extent = [](Index n) { return static_cast<double>(n); };
  require_memory(3 * extent(c.B) * extent(c.H) * extent(c.W) * extent(c.D) + 8 * extent(c.D) * extent(c.D),
                 fmt::format("B={},H={},W={},D={}", c.B, c.H, c.W, c.D));
  require_score_memory(c.H, c.W, c.passes);

  Problem problem;
  problem.operation = Operation::axial;
  problem.case_text = print_case_text(case_text(c));
  problem.attributes.heads = c.heads;
  problem.attributes.eps = c.eps;
  problem.attributes.passes = c.passes;

  using Value = std::function<float(const std::array<Index, 4>&, const Bits&)>;
  const auto add = [&](const std::string& tensor, const std::vector<Index>& shape, const Value& value) {
    Tensor laid = laid_out(c, tensor, shape);
    const Stream stream(c.seed, tensor);
    for_each_subscript(shape, [&](const std::vector<Index>& subscript) {
      std::array<Index, 4> at{};
      Index position = laid.offset;
      for (std::size_t dimension = 0; dimension < subscript.size(); ++dimension) {
        if (laid.stride[dimension] == 0) continue;  // what repeats along a dimension is the entry at 0
        at[dimension] = subscript[dimension];
        position += subscript[dimension] * laid.stride[dimension];
      }
      laid.buffer[static_cast<std::size_t>(position)] = value(at, stream.at(at[0], at[1], at[2], at[3]));
    });
    problem.inputs.emplace(tensor, std::move(laid));
  };

  const Stream tokens(c.seed, "tokens of x");
  add("x", {c.B, c.H, c.W, c.D}, [&](const std::array<Index, 4>& at, const Bits& random) {
    return input_value(c.x, at, tokens.at(at[0], at[1], at[2]), random);
  });
  for (const std::string pass : {"row", "col"}) {
    if (c.passes == (pass == "row" ? AxialPasses::col : AxialPasses::row)) continue;
    const Index D = c.D;
    const Stream keys(c.seed, pass + "_qkv.weight");
    add(pass + "_norm.weight", {D},
        [&](const auto&, const Bits& random) { return norm_weight_value(c, random); });
    add(pass + "_norm.bias", {D},
        [&](const auto&, const Bits& random) { return norm_bias_value(c, random); });
    add(pass + "_qkv.weight", {3 * D, D}, [&](const std::array<Index, 4>& at, const Bits& random) {
      return qkv_value(c, at[0], random, keys.at(at[0] % D + D, at[1]));
    });
    add(pass + "_out.weight", {D, D},
        [&](const auto&, const Bits& random) { return out_weight_value(c, random); });
    add(pass + "_out.bias", {D}, [&](const auto&, const Bits& random) { return out_bias_value(c, random); });
  }
  return problem;
}

// ---- shrinking

std::vector<AxialCase> simpler(const AxialCase& c) {
  std::vector<AxialCase> cases;
  const auto add = [&](const AxialCase& changed) {
    if (changed != c && std::find(cases.begin(), cases.end(), changed) == cases.end())
      cases.push_back(changed);
  };
  const auto with = [&](auto member, const auto& value) {
    AxialCase changed = c;
    changed.*member = value;
    add(changed);
  };
  for (Index AxialCase::*extent : {&AxialCase::B, &AxialCase::H, &AxialCase::W})
    for (const Index smaller : {Index{1}, c.*extent / 2, c.*extent - 1})
      if (smaller >= 1 && smaller < c.*extent) with(extent, smaller);

  // The width by its two factors, so that heads keeps dividing it.
  const Index d = c.D / c.heads;
  const auto width = [&](Index heads, Index head_size) {
    if (heads < 1 || head_size < 1 || heads > c.heads || head_size > d) return;
    AxialCase changed = c;
    changed.heads = heads;
    changed.D = heads * head_size;
    add(changed);
  };
  for (const Index smaller : {Index{1}, c.heads / 2, c.heads - 1}) width(smaller, d);
  for (const Index smaller : {Index{1}, Index{2}, d / 2, d - 1}) width(c.heads, smaller);

  if (c.passes == AxialPasses::both) {
    with(&AxialCase::passes, AxialPasses::row);
    with(&AxialCase::passes, AxialPasses::col);
  }
  with(&AxialCase::layout, Layout::contiguous);
  with(&AxialCase::weights, WeightsFamily::normal);
  with(&AxialCase::x, AxialInput{});
  with(&AxialCase::eps, 1e-5F);
  with(&AxialCase::seed, std::uint64_t{1});
  return cases;
}

std::vector<std::pair<std::string, std::string>> families(const AxialCase& c) {
  return {{"x", std::string(name(c.x.family))},
          {"weights", std::string(name(c.weights))},
          {"passes", std::string(name(c.passes))},
          {"layout", std::string(name_in(layout_names, c.layout))}};
}

double work(const AxialCase& c) {
  const auto D = static_cast<double>(c.D);
  const double tokens = static_cast<double>(c.B) * static_cast<double>(c.H) * static_cast<double>(c.W);
  const auto of_pass = [&](Index L) { return tokens * (4 * D * D + 2 * static_cast<double>(L) * D); };
  return (c.passes == AxialPasses::col ? 0 : of_pass(c.W)) +
         (c.passes == AxialPasses::row ? 0 : of_pass(c.H));
}

// ---- drawing

AxialCase draw_axial_case(Draw& draw, double largest_work) {
  // Work is spread evenly over octaves: most problems are small and quick, and large ones still come.
  double budget = 1;
  for (Index octaves = draw.between(7, 21); octaves > 0; --octaves) budget *= 2;
  budget = std::min(budget, largest_work);

  AxialCase c{};
  c.heads = 1;
  c.passes = draw.pick({AxialPasses::both, AxialPasses::both, AxialPasses::row, AxialPasses::col});

  // Width first, since its square counts: head sizes 1, 3, 16, 24, 48, 64, 128 and others, in few and many
  // heads.
  const auto fits = [&](const AxialCase& changed) { return work(changed) <= budget; };
  AxialCase smallest = c;
  smallest.B = smallest.H = smallest.W = 1;
  const auto fitting = [&](AxialCase base, Index AxialCase::*extent, const std::vector<Index>& sizes) {
    std::vector<Index> result{1};
    for (const Index size : sizes) {
      base.*extent = size;
      if (fits(base)) result.push_back(size);
    }
    return result;
  };
  smallest.D = draw.pick(
      fitting(smallest, &AxialCase::D, {1, 2, 3, 4, 5, 6, 8, 12, 16, 18, 24, 32, 33, 36, 48, 64, 96, 128}));
  std::vector<Index> divisors;
  for (Index heads = 1; heads <= smallest.D; ++heads)
    if (smallest.D % heads == 0) divisors.push_back(heads);
  c = smallest;
  c.heads = draw.pick(divisors);
  c.D = smallest.D;

  std::vector<Index AxialCase::*> extents{&AxialCase::H, &AxialCase::W, &AxialCase::B};
  while (!extents.empty()) {
    const auto chosen = extents.begin() + draw.between(0, static_cast<Index>(extents.size()) - 1);
    const std::vector<Index> sizes =
        *chosen == &AxialCase::B ? std::vector<Index>{1, 1, 2, 3}
                                 : std::vector<Index>{1,  2,  3,  4,  5,  6,  7,  8,  9,  12,  13,  16, 17,
                                                      24, 31, 32, 33, 48, 63, 64, 65, 96, 127, 200, 300};
    c.*(*chosen) = draw.pick(fitting(c, *chosen, sizes));
    extents.erase(chosen);
  }

  c.x.family = drawn(draw, input_names);
  if (c.x.family == InputFamily::value) c.x.value = draw.pick({1234.0F, 1.0F, 0.0F, -0.5F, 0.1F});
  c.weights = draw.one_in(3) ? WeightsFamily::normal : drawn(draw, weights_names);
  c.layout = draw.one_in(3) ? Layout::contiguous : drawn(draw, layout_names);
  c.eps = draw.pick({1e-5F, 1e-5F, 1e-5F, 1e-5F, 1e-6F, 1e-3F});
  c.seed = static_cast<std::uint64_t>(draw.between(1, 999'999));
  return c;
}

const std::vector<AxialCase>& opening_axial_cases() {
  static const std::vector<AxialCase> cases = [] {
    std::vector<AxialCase> parsed;
    for (const char* text : {
             "axial:H=2,W=3,D=4,heads=2",
             "axial:H=2,W=3,D=8,heads=2,x=index",
             "axial:H=5,W=7,D=24,heads=3,weights=heads",
             "axial:H=1,W=4,D=256,heads=4,x=const:1234",
             "axial:B=2,H=3,W=8,D=16,heads=2,weights=logits_200",
             "axial:H=4,W=6,D=16,heads=2,weights=logits_1e5",
             "axial:H=9,W=12,D=32,heads=2,x=uniform,layout=padded",
             "axial:H=31,W=2,D=16,heads=4,passes=col,layout=permuted",
             "axial:H=1,W=33,D=24,heads=1,passes=row,x=small",
             "axial:B=3,H=1,W=1,D=12,heads=12,x=large",
             "axial:H=4,W=5,D=12,heads=4,weights=zero_out,x=offset",
             "axial:H=3,W=4,D=8,heads=1,weights=zero_qkv,x=constant",
             "axial:B=2,H=4,W=3,D=48,heads=3,weights=dominant,layout=broadcast",
             "axial:H=2,W=200,D=3,heads=3,passes=row",
         })
      parsed.push_back(axial_case_from(parse_case_text(text)));
    return parsed;
  }();
  return cases;
}

}  // namespace gaugeblock
