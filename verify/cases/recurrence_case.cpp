#include "gaugeblock/verify/cases/recurrence_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <span>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/layout.h"
#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {
namespace {

template <class Family>
struct Named {
  std::string_view name;
  Family family;
};

constexpr std::array<Named<GateFamily>, 12> gate_names{{
    {"one", GateFamily::one},
    {"uniform", GateFamily::uniform},
    {"near_one", GateFamily::near_one},
    {"const", GateFamily::constant},
    {"zeros", GateFamily::zeros},
    {"reset", GateFamily::reset},
    {"negative", GateFamily::negative},
    {"above_one", GateFamily::above_one},
    {"alternating", GateFamily::alternating},
    {"tiny", GateFamily::tiny},
    {"log_uniform", GateFamily::log_uniform},
    {"subnormal", GateFamily::subnormal},
}};

constexpr std::array<Named<ValueFamily>, 9> beta_names{{
    {"unit", ValueFamily::unit},
    {"normal", ValueFamily::normal},
    {"integers", ValueFamily::integers},
    {"uniform", ValueFamily::uniform},
    {"small", ValueFamily::small},
    {"signed_zeros", ValueFamily::signed_zeros},
    {"dominant", ValueFamily::dominant},
    {"large", ValueFamily::large},
    {"zero", ValueFamily::zero},
}};

constexpr std::array<Named<ValueFamily>, 8> qkv_names{{
    {"normal", ValueFamily::normal},
    {"integers", ValueFamily::integers},
    {"uniform", ValueFamily::uniform},
    {"small", ValueFamily::small},
    {"signed_zeros", ValueFamily::signed_zeros},
    {"dominant", ValueFamily::dominant},
    {"large", ValueFamily::large},
    {"no_keys", ValueFamily::no_keys},
}};

constexpr std::array<Named<StateFamily>, 2> state_names{{
    {"none", StateFamily::none},
    {"writes", StateFamily::writes},
}};

constexpr std::array<Named<Layout>, 4> layout_names{{
    {"contiguous", Layout::contiguous},
    {"padded", Layout::padded},
    {"permuted", Layout::permuted},
    {"broadcast", Layout::broadcast},
}};

template <class Family, std::size_t N>
std::vector<std::string_view> names_in(const std::array<Named<Family>, N>& table) {
  std::vector<std::string_view> names;
  names.reserve(N);
  for (const auto& entry : table) names.push_back(entry.name);
  return names;
}

template <class Family, std::size_t N>
std::string_view name_in(const std::array<Named<Family>, N>& table, Family family) {
  for (const auto& entry : table)
    if (entry.family == family) return entry.name;
  return "?";
}

template <class Family, std::size_t N>
std::size_t place_in(const std::array<Named<Family>, N>& table, Family family) {
  for (std::size_t i = 0; i < N; ++i)
    if (table[i].family == family) return i;
  return N;
}

template <class Family, std::size_t N>
Family chosen(const CaseFields& fields, std::string_view key, const std::array<Named<Family>, N>& table,
              Family fallback) {
  return table[fields.choice(key, names_in(table), place_in(table, fallback))].family;
}

template <class Family, std::size_t N>
Family drawn(Draw& draw, const std::array<Named<Family>, N>& table) {
  return table[static_cast<std::size_t>(draw.between(0, static_cast<Index>(N) - 1))].family;
}

// Values.

constexpr int small_exponent = -10;
constexpr int large_exponent = 50;
constexpr int dominant_exponent = 20;

/// Value at one place; what distinguishes a dominant entry is said by the caller.
float value_of(ValueFamily family, const Bits& random, std::uint32_t largest_integer, bool dominates,
               bool is_large) {
  switch (family) {
    case ValueFamily::unit:
      return 1.0F;
    case ValueFamily::integers:
      return small_integer(random[0], largest_integer);
    case ValueFamily::uniform:
      return unit_uniform(random[0]);
    case ValueFamily::small:
      return scaled(normal(random), small_exponent);
    case ValueFamily::signed_zeros:
      return normal_or_signed_zero(random);
    case ValueFamily::dominant:
      return dominates ? scaled(normal(random), dominant_exponent) : normal(random);
    case ValueFamily::large:
      return is_large ? scaled(normal(random), large_exponent) : normal(random);
    case ValueFamily::zero:
      return 0.0F;
    case ValueFamily::normal:
    case ValueFamily::no_keys:
      break;
  }
  return normal(random);
}

float gate_of(const Gate& gate, const Bits& random, Index t, Index T) {
  switch (gate.family) {
    case GateFamily::one:
      return 1.0F;
    case GateFamily::uniform:
      return unit_uniform(random[0]);
    case GateFamily::near_one: {
      // 1e-3 is 16777.2 units of 2^-24, the distance of floats below 1.
      const std::uint32_t units = below(random[0], 16778);
      return static_cast<float>((1U << 24) - units) * 0x1p-24F;
    }
    case GateFamily::constant:
      return gate.value;
    case GateFamily::zeros:
      return below(random[3], 10) == 0 ? 0.0F : unit_uniform(random[0]);
    case GateFamily::reset:
      return t % gate.period == 0 ? 0.0F : gate.value;
    case GateFamily::negative:
      return signed_uniform(random[0]);
    case GateFamily::above_one: {
      // In units of 2^-23, the distance of floats from 1 to 2. (1 + 4/T)^T < e^4.
      const Index most = std::clamp<Index>((Index{4} << 23) / std::max<Index>(T, 1), 1, Index{1} << 23);
      const std::uint32_t units = 1 + below(random[0], static_cast<std::uint32_t>(most));
      return static_cast<float>((1U << 23) + units) * 0x1p-23F;
    }
    case GateFamily::alternating:
      return t % 2 == 0 ? 2.0F : 0.5F;
    case GateFamily::tiny:
      return scaled(unit_uniform(random[0]), -100);
    case GateFamily::log_uniform:
      return log_uniform(random, -40, 4);
    case GateFamily::subnormal:
      return subnormal(random[0]);
  }
  return 1.0F;
}

/// Which of q, k, v are large when qkv=large: one or two, and one when beta is large or dominant. The product
/// of all four is then at most 2^100 times what normal entries give, which leaves y below float32's 2^128.
struct LargeTensors {
  bool q = false, k = false, v = false;
};

LargeTensors large_tensors(const RecurrenceCase& c) {
  LargeTensors large;
  if (c.qkv != ValueFamily::large) return large;
  const Bits random = Stream(c.seed, "large").at(0);
  const std::uint32_t first = below(random[0], 3);
  const bool large_beta = c.beta == ValueFamily::large || c.beta == ValueFamily::dominant;
  const bool two = !large_beta && below(random[1], 2) == 1;
  const std::uint32_t second = two ? (first + 1) % 3 : first;
  large.q = first == 0 || second == 0;
  large.k = first == 1 || second == 1;
  large.v = first == 2 || second == 2;
  return large;
}

/// Power of two that beta·k·v has on average, beside that of normal entries.
int write_exponent(const RecurrenceCase& c) {
  int exponent = 0;
  if (c.beta == ValueFamily::small) exponent += small_exponent;
  if (c.beta == ValueFamily::large) exponent += large_exponent;
  if (c.qkv == ValueFamily::small) exponent += 2 * small_exponent;
  const LargeTensors large = large_tensors(c);
  exponent += large_exponent * (int{large.k} + int{large.v});
  return exponent;
}

// Layouts.

/// Rows of an odd pitch longer than the extent, so that their starts are aligned to nothing.
std::vector<Index> padded_strides(std::vector<Index> shape, Index gap, const std::string& what) {
  // `gap` is the distance of neighbours in a row: 1, or more for gate and beta, which kernels often get as
  // one column of a wider tensor.
  const Index row = shape.back() * gap;
  shape.back() = row % 2 == 0 ? row + 1 : row + 2;
  std::vector<Index> stride = contiguous_strides(shape, what);
  stride.back() = gap;
  return stride;
}

/// Sets the stride to 0 along dimensions drawn at random, each with probability 1/4 and at least one.
void broadcast(std::vector<Index>& stride, const Bits& random, std::span<const std::size_t> candidates) {
  const std::size_t sure = candidates[below(random[0], static_cast<std::uint32_t>(candidates.size()))];
  for (const std::size_t dimension : candidates)
    if (dimension == sure || below(random[1] << (2 * dimension), 4) == 0) stride[dimension] = 0;
}

/// Repeating one gate of these families along T would let products grow without bound, or lose the family.
bool gate_may_repeat_along_time(GateFamily family) {
  return family != GateFamily::alternating && family != GateFamily::log_uniform &&
         family != GateFamily::reset;
}

Tensor laid_out(const RecurrenceCase& c, const std::string& tensor, std::vector<Index> shape) {
  const Stream stream(c.seed, "layout of " + tensor);
  const bool is_multiplier = tensor == "gate" || tensor == "beta";
  switch (c.layout) {
    case Layout::contiguous:
      break;
    case Layout::padded: {
      std::vector<Index> stride = padded_strides(shape, is_multiplier ? 3 : 1, tensor);
      return Tensor::strided(std::move(shape), std::move(stride), 1);
    }
    case Layout::permuted: {
      std::vector<Index> stride = strides_in_order(shape, drawn_order(shape.size(), stream.at(0)), tensor);
      return Tensor::strided(std::move(shape), std::move(stride));
    }
    case Layout::broadcast: {
      std::vector<Index> stride = contiguous_strides(shape, tensor);
      std::vector<std::size_t> candidates(shape.size());
      std::iota(candidates.begin(), candidates.end(), std::size_t{0});
      if (tensor == "gate" && !gate_may_repeat_along_time(c.gate.family)) candidates = {0, 2};
      // Some tensors keep their strides, so that both kinds meet in one problem. gate never does, so that no
      // problem of this layout is contiguous throughout.
      if (tensor == "gate" || below(stream.at(1)[0], 3) != 0) broadcast(stride, stream.at(0), candidates);
      return Tensor::strided(std::move(shape), std::move(stride));
    }
  }
  return Tensor::contiguous(std::move(shape));
}

/// Fills a tensor with value(at), where `at` is 0 along dimensions of stride 0.
template <class Value>
void fill(Tensor& tensor, Value&& value) {
  for_each_subscript(tensor.shape, [&](const std::vector<Index>& subscript) {
    std::array<Index, 4> at{};
    Index position = tensor.offset;
    for (std::size_t dimension = 0; dimension < subscript.size(); ++dimension) {
      if (tensor.stride[dimension] == 0) continue;
      at[dimension] = subscript[dimension];
      position += subscript[dimension] * tensor.stride[dimension];
    }
    tensor.buffer[static_cast<std::size_t>(position)] = value(at);
  });
}

}  // namespace

std::string_view name(GateFamily family) {
  return name_in(gate_names, family);
}
std::string_view name(ValueFamily family) {
  return family == ValueFamily::no_keys ? name_in(qkv_names, family) : name_in(beta_names, family);
}
std::string_view name(StateFamily family) {
  return name_in(state_names, family);
}
std::string_view name(Layout layout) {
  return name_in(layout_names, layout);
}

std::string gate_text(const Gate& gate) {
  switch (gate.family) {
    case GateFamily::constant:
      return fmt::format("const:{}", float_text(gate.value));
    case GateFamily::reset:
      return fmt::format("reset:{}:{}", gate.period, float_text(gate.value));
    default:
      return std::string(name(gate.family));
  }
}

Gate parse_gate(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view family = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto found = std::find_if(gate_names.begin(), gate_names.end(),
                                  [&](const Named<GateFamily>& entry) { return entry.name == family; });
  std::vector<std::string_view> legal = names_in(gate_names);
  std::replace(legal.begin(), legal.end(), std::string_view("const"), std::string_view("const:X"));
  std::replace(legal.begin(), legal.end(), std::string_view("reset"), std::string_view("reset:N:X"));
  if (found == gate_names.end()) refuse_name("gate", text, legal);
  Gate gate;
  gate.family = found->family;
  if (gate.family == GateFamily::constant) {
    gate.value = parse_float(rest, "X of gate=const:X");
  } else if (gate.family == GateFamily::reset) {
    const std::size_t second = rest.find(':');
    gate.period = parse_index(rest.substr(0, second), "N of gate=reset:N:X", 1, largest_extent);
    gate.value = parse_float(second == std::string_view::npos ? std::string_view() : rest.substr(second + 1),
                             "X of gate=reset:N:X");
  } else if (colon != std::string_view::npos) {
    refuse_name("gate", text, legal);
  }
  return gate;
}

RecurrenceCase recurrence_case_from(const CaseText& text) {
  static const std::vector<std::string_view> keys{"B",    "T",   "H",     "K",      "V",   "gate",
                                                  "beta", "qkv", "state", "layout", "seed"};
  const CaseFields fields(text, keys);
  RecurrenceCase c;
  c.B = fields.extent("B", c.B);
  c.T = fields.extent("T", c.T, 0);
  c.H = fields.extent("H", c.H);
  c.K = fields.extent("K", c.K);
  c.V = fields.extent("V", c.V);
  c.gate = parse_gate(fields.word("gate", "uniform"));
  c.beta = chosen(fields, "beta", beta_names, c.beta);
  c.qkv = chosen(fields, "qkv", qkv_names, c.qkv);
  c.state = chosen(fields, "state", state_names, c.state);
  c.layout = chosen(fields, "layout", layout_names, c.layout);
  c.seed = fields.unsigned_integer("seed", c.seed);
  return c;
}

CaseText case_text(const RecurrenceCase& c) {
  CaseText text{"recurrence", {}};
  text.add("B", c.B).add("T", c.T).add("H", c.H).add("K", c.K).add("V", c.V);
  text.add("gate", gate_text(c.gate)).add("beta", name(c.beta)).add("qkv", name(c.qkv));
  text.add("state", name(c.state)).add("layout", name(c.layout)).add("seed", c.seed);
  return text;
}

Problem make_problem(const RecurrenceCase& c) {
  const auto product = [](std::initializer_list<Index> extents) {
    double elements = 1;
    for (const Index extent : extents) elements *= static_cast<double>(extent);
    return elements;
  };
  // Inputs and outputs of one run.
  require_memory(2 * product({c.B, c.T, c.H, c.K}) + 2 * product({c.B, c.T, c.H, c.V}) +
                     2 * product({c.B, c.T, c.H}) + 2 * product({c.B, c.H, c.K, c.V}),
                 fmt::format("B={},T={},H={},K={},V={}", c.B, c.T, c.H, c.K, c.V));

  Problem problem;
  problem.operation = Operation::recurrence;
  problem.case_text = print_case_text(case_text(c));
  const auto add = [&](const std::string& tensor, std::vector<Index> shape, auto&& value) {
    Tensor laid = laid_out(c, tensor, std::move(shape));
    const Stream stream(c.seed, tensor);
    fill(laid,
         [&](const std::array<Index, 4>& at) { return value(at, stream.at(at[0], at[1], at[2], at[3])); });
    problem.inputs.emplace(tensor, std::move(laid));
  };

  const LargeTensors large = large_tensors(c);
  const auto add_vectors = [&](const std::string& tensor, Index extent, bool is_large) {
    const Stream places(c.seed, "dominant entry of " + tensor);
    add(tensor, {c.B, c.T, c.H, extent}, [&](const std::array<Index, 4>& at, const Bits& random) {
      if (c.qkv == ValueFamily::no_keys && tensor == "k") return 0.0F;
      const bool dominates =
          c.qkv == ValueFamily::dominant &&
          at[3] == Index{below(places.at(at[0], at[1], at[2])[0], static_cast<std::uint32_t>(extent))};
      return value_of(c.qkv, random, 3, dominates, is_large);
    });
  };
  add_vectors("q", c.K, large.q);
  add_vectors("k", c.K, large.k);
  add_vectors("v", c.V, large.v);

  add("gate", {c.B, c.T, c.H}, [&](const std::array<Index, 4>& at, const Bits& random) {
    return gate_of(c.gate, random, at[1], c.T);
  });

  const Stream dominant_steps(c.seed, "dominant step of beta");
  add("beta", {c.B, c.T, c.H}, [&](const std::array<Index, 4>& at, const Bits& random) {
    const bool dominates =
        c.beta == ValueFamily::dominant &&
        at[1] == Index{below(dominant_steps.at(at[0], at[2])[0], static_cast<std::uint32_t>(c.T))};
    return value_of(c.beta, random, 2, dominates, true);
  });

  if (c.state == StateFamily::writes) {
    const int exponent = write_exponent(c);
    const Stream places(c.seed, "dominant entry of initial_state");
    add("initial_state", {c.B, c.H, c.K, c.V}, [&](const std::array<Index, 4>& at, const Bits& random) {
      switch (c.qkv) {
        case ValueFamily::integers:
        case ValueFamily::uniform:
        case ValueFamily::signed_zeros:
          return scaled(value_of(c.qkv, random, 3, false, false), exponent);
        case ValueFamily::dominant: {
          const bool dominates =
              at[3] == Index{below(places.at(at[0], at[1], at[2])[0], static_cast<std::uint32_t>(c.V))};
          return scaled(normal(random), exponent + (dominates ? dominant_exponent : 0));
        }
        default:
          return scaled(normal(random), exponent);
      }
    });
  }
  return problem;
}

// Shrinking.

std::vector<RecurrenceCase> simpler(const RecurrenceCase& c) {
  std::vector<RecurrenceCase> cases;
  const auto with = [&](auto member, auto value) {
    RecurrenceCase changed = c;
    changed.*member = value;
    if (changed != c && std::find(cases.begin(), cases.end(), changed) == cases.end())
      cases.push_back(changed);
  };
  // The smallest extents by themselves, since a fault need not show at every extent on the way down to them.
  const auto extent = [&](Index RecurrenceCase::*member, Index least) {
    const Index now = c.*member;
    for (const Index smaller :
         {Index{0}, Index{1}, Index{2}, Index{3}, Index{4}, now / 2, now - now / 4, now - 1})
      if (smaller >= least && smaller < now) with(member, smaller);
  };
  extent(&RecurrenceCase::B, 1);
  extent(&RecurrenceCase::H, 1);
  extent(&RecurrenceCase::T, 0);
  extent(&RecurrenceCase::K, 1);
  extent(&RecurrenceCase::V, 1);

  const auto plainer = [&](auto member, const auto& plainest_first) {
    for (const auto& family : plainest_first) {
      if (family == c.*member) break;
      with(member, family);
    }
  };
  plainer(&RecurrenceCase::layout, std::array{Layout::contiguous});
  plainer(&RecurrenceCase::state, std::array{StateFamily::none});
  plainer(&RecurrenceCase::beta, std::array{ValueFamily::unit, ValueFamily::integers, ValueFamily::normal});
  plainer(&RecurrenceCase::qkv, std::array{ValueFamily::integers, ValueFamily::normal});
  const std::array gates{Gate{GateFamily::one, 0, 0}, Gate{GateFamily::uniform, 0, 0}};
  plainer(&RecurrenceCase::gate, gates);
  if (c.gate.family == GateFamily::reset) {
    with(&RecurrenceCase::gate, Gate{GateFamily::constant, 0, c.gate.value});
    if (c.gate.period > 1)
      with(&RecurrenceCase::gate, Gate{GateFamily::reset, c.gate.period - 1, c.gate.value});
  }
  with(&RecurrenceCase::seed, std::uint64_t{1});
  return cases;
}

std::vector<std::pair<std::string, std::string>> families(const RecurrenceCase& c) {
  return {{"gate", std::string(name(c.gate.family))},
          {"beta", std::string(name(c.beta))},
          {"qkv", std::string(name(c.qkv))},
          {"state", std::string(name(c.state))},
          {"layout", std::string(name(c.layout))}};
}

double work(const RecurrenceCase& c) {
  const auto of = [](Index extent) { return static_cast<double>(extent); };
  // The definition updates a state of K·V in each step; masked attention looks back over all steps instead.
  const double definition = of(c.T) * of(c.K) * of(c.V);
  const double looking_back = of(c.T) * of(c.T) * (of(c.K) + of(c.V)) / 2;
  return of(c.B) * of(c.H) * std::max(definition, looking_back);
}

// Drawing.

RecurrenceCase draw_recurrence_case(Draw& draw, double largest_work) {
  // A budget spread evenly over octaves: small problems, which are quick and print well, are common, and
  // large ones, which a chunk or a block of threads does not cover, still come. Sizes use it up only in part,
  // hence the octaves beyond the largest work.
  double budget = 1;
  for (Index octaves = draw.between(8, 21); octaves > 0; --octaves) budget *= 2;
  budget = std::min(budget, largest_work);
  const double largest = std::min(largest_work, std::max(budget, 1024.0));

  struct Choice {
    Index RecurrenceCase::*extent;
    std::vector<Index> sizes;
  };
  static const std::vector<Index> times{1,  2,  3,  4,  5,  7,  8,  9,   13,  15,  16,  17,  23,  31,  32,
                                        33, 47, 50, 63, 64, 65, 97, 127, 128, 129, 200, 255, 256, 257, 300};
  static const std::vector<Index> widths{1,  2,  3,  4,  5,  7,  8,  11, 12, 15,  16, 17,
                                         24, 29, 31, 32, 33, 48, 60, 64, 65, 100, 128};
  std::vector<Choice> choices{{&RecurrenceCase::T, times},
                              {&RecurrenceCase::K, widths},
                              {&RecurrenceCase::V, widths},
                              {&RecurrenceCase::B, {1, 1, 2, 3}},
                              {&RecurrenceCase::H, {1, 1, 2, 3, 4, 5}}};
  RecurrenceCase c;
  while (!choices.empty()) {
    const auto chosen = choices.begin() + draw.between(0, static_cast<Index>(choices.size()) - 1);
    std::vector<Index> fitting;
    for (const Index size : chosen->sizes)
      if (size == 1 || static_cast<double>(size) <= budget) fitting.push_back(size);
    c.*(chosen->extent) = draw.pick(fitting);
    budget /= static_cast<double>(c.*(chosen->extent));
    choices.erase(chosen);
  }
  // Long sequences are laborious by looking back: what is over is taken from the other extents first.
  for (Index RecurrenceCase::*extent :
       {&RecurrenceCase::B, &RecurrenceCase::H, &RecurrenceCase::K, &RecurrenceCase::V, &RecurrenceCase::T})
    while (c.*extent > 1 && work(c) > largest) c.*extent = c.*extent / 2;
  if (draw.one_in(40)) c.T = 0;

  c.gate.family = drawn(draw, gate_names);
  if (c.gate.family == GateFamily::constant)
    c.gate.value = draw.pick({0.9F, 0.5F, 0.999F, 1e-3F, 6.5e-12F, 1.9e-22F, 1e-38F, -0.75F, -1.0F, 0.0F});
  if (c.gate.family == GateFamily::reset) {
    c.gate.period = draw.pick<Index>({1, 2, 3, 4, 5, 8, 16, 17, 33});
    c.gate.value = draw.pick({0.9F, 1.0F, 0.5F, -0.5F, 0.999F});
  }
  c.beta = drawn(draw, beta_names);
  c.qkv = drawn(draw, qkv_names);
  c.state = drawn(draw, state_names);
  // Without writes and without a state every output is 0: worth few cases.
  const auto writes_nothing = [&] { return c.beta == ValueFamily::zero || c.qkv == ValueFamily::no_keys; };
  if (writes_nothing() && !draw.one_in(2)) {
    c.beta = ValueFamily::normal;
    c.qkv = ValueFamily::normal;
  }
  if (writes_nothing() && !draw.one_in(8)) c.state = StateFamily::writes;
  c.layout = draw.one_in(3) ? Layout::contiguous : drawn(draw, layout_names);
  c.seed = static_cast<std::uint64_t>(draw.between(1, 999'999));
  return c;
}

const std::vector<RecurrenceCase>& opening_recurrence_cases() {
  static const std::vector<RecurrenceCase> cases = [] {
    std::vector<RecurrenceCase> parsed;
    for (const char* text : {
             "recurrence:T=3,K=2,V=2,gate=one,qkv=integers",
             "recurrence:T=8,H=2,K=4,V=3,gate=reset:4:0.9,beta=uniform,state=writes",
             "recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one",
             "recurrence:T=16,H=2,K=8,V=8,gate=const:6.5e-12,beta=normal,state=writes",
             "recurrence:T=50,K=5,V=7,gate=one,beta=normal,layout=padded",
             "recurrence:T=17,H=3,K=4,V=5,gate=const:1.9e-22,beta=uniform,state=writes",
             "recurrence:B=1,T=7,H=2,K=6,V=4,gate=uniform,qkv=no_keys,state=writes",
             "recurrence:B=2,T=33,H=3,K=33,V=31,gate=uniform,beta=normal,layout=permuted",
             "recurrence:T=65,H=2,K=17,V=15,gate=zeros,beta=signed_zeros,state=writes",
             "recurrence:B=2,T=31,H=2,K=7,V=24,gate=negative,beta=small,layout=broadcast",
             "recurrence:T=0,H=2,K=3,V=5,state=writes",
             "recurrence:B=3,T=1,H=5,K=1,V=1,gate=uniform,beta=normal,state=writes",
             "recurrence:T=63,H=2,K=48,V=3,gate=log_uniform,beta=integers,state=writes,layout=padded",
             "recurrence:T=257,K=16,V=16,gate=near_one,beta=uniform,qkv=uniform,state=writes",
             // More than 2^15 elements of q and k, then of v and y, with little else to compute.
             "recurrence:B=3,T=18,H=5,K=128,V=1,gate=uniform,beta=uniform",
             "recurrence:B=3,T=18,H=5,K=1,V=128,gate=uniform,beta=uniform,state=writes",
         })
      parsed.push_back(recurrence_case_from(parse_case_text(text)));
    return parsed;
  }();
  return cases;
}

}  // namespace gaugeblock
