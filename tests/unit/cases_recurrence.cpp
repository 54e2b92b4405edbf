// Cases of the recurrence: the tensors are fixed bit for bit, families keep their promises, layouts keep
// values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

Problem problem_of(const std::string& text) {
  Problem problem = make_problem(parse_case("recurrence:" + text));
  EXPECT_NO_THROW(check_problem(problem)) << text;
  return problem;
}

std::vector<float> values_of(const std::string& text, const std::string& tensor) {
  return problem_of(text).input(tensor).values();
}

/// FNV-1a of names, shapes and values (little-endian, C order) of all inputs.
std::uint64_t hash_of(const Problem& problem) {
  std::string bytes;
  for (const auto& [name, tensor] : problem.inputs) {
    bytes += name + shape_text(tensor.shape);
    for (const float value : tensor.values())
      for (int shift = 0; shift < 32; shift += 8)
        bytes += static_cast<char>(std::bit_cast<std::uint32_t>(value) >> shift & 0xFFU);
  }
  return fnv1a(bytes);
}

// A change here changes what every recorded case text means: golden files and reports would no longer repeat.
TEST(CasesRecurrence, TensorsAreTheSameBitsEverywhere) {
  const std::vector<std::pair<std::string, std::uint64_t>> fixed{
      {"B=2,T=128,H=4,K=24,V=24,gate=near_one,seed=42", 0xedcb5107beb1d696U},
      {"T=8,H=2,K=4,V=3,gate=reset:4:0.9,beta=uniform,state=writes,seed=1", 0xdc9299ff2d5dee39U},
      {"B=2,T=9,H=3,K=5,V=7,gate=zeros,beta=integers,qkv=integers,state=writes,layout=permuted,seed=2",
       0x1696eea498f5a6d7U},
      {"T=17,K=3,V=4,gate=log_uniform,beta=small,qkv=uniform,state=writes,layout=padded,seed=3",
       0xa3efb4db43015fabU},
      {"T=17,K=3,V=4,gate=above_one,beta=dominant,qkv=dominant,state=writes,layout=broadcast,seed=4",
       0xd31dbee91fc520f3U},
      {"T=17,K=3,V=4,gate=subnormal,beta=large,qkv=large,state=writes,seed=5", 0x0d3941af48cbf378U},
      {"T=17,K=3,V=4,gate=negative,beta=signed_zeros,qkv=signed_zeros,state=writes,seed=6",
       0x4f8f6517317d2ce7U},
      {"T=17,K=3,V=4,gate=tiny,beta=normal,qkv=small,state=writes,seed=18446744073709551615",
       0x4dae9bb546d724adU},
      {"T=17,K=3,V=4,gate=alternating,beta=zero,qkv=no_keys,state=writes,layout=broadcast,seed=0",
       0xb528b4796b47d41dU},
      {"T=17,K=3,V=4,gate=const:0.9,beta=unit,qkv=normal,layout=permuted,seed=4294967296",
       0x08b13d14658c8bf4U},
  };
  for (const auto& [text, hash] : fixed)
    EXPECT_EQ(hash_of(problem_of(text)), hash) << text << std::hex << " 0x" << hash_of(problem_of(text));
}

TEST(CasesRecurrence, LayoutsKeepValuesAndGuards) {
  const std::string sizes = "B=2,T=5,H=3,K=4,V=6,gate=zeros,beta=normal,state=writes,seed=9,layout=";
  const Problem contiguous = problem_of(sizes + "contiguous");
  for (const std::string layout : {"padded", "permuted", "broadcast"}) {
    const Problem other = problem_of(sizes + layout);
    ASSERT_EQ(other.inputs.size(), 6U);
    for (const auto& [name, tensor] : other.inputs) {
      EXPECT_EQ(tensor.damaged_guards(), 0) << layout << " " << name;
      EXPECT_EQ(tensor.shape, contiguous.input(name).shape);
      // Along a stride of 0 the entry is the one at subscript 0.
      const Tensor& plain = contiguous.input(name);
      const std::vector<float> values = tensor.values();
      for (Index element = 0; element < tensor.size(); ++element) {
        const std::vector<Index> at = subscripts(tensor.shape, element);
        Index position = plain.offset;
        for (std::size_t dimension = 0; dimension < at.size(); ++dimension)
          if (tensor.stride[dimension] != 0) position += at[dimension] * plain.stride[dimension];
        EXPECT_TRUE(same_bits(values[static_cast<std::size_t>(element)],
                              plain.buffer[static_cast<std::size_t>(position)]))
            << layout << " " << name << " " << shape_text(at);
      }
    }
  }
}

TEST(CasesRecurrence, PaddedRowsAreAlignedToNothing) {
  for (const int K : {3, 4, 8, 24}) {
    const Problem problem = problem_of("B=2,T=5,H=3,V=6,layout=padded,K=" + std::to_string(K));
    for (const auto& [name, tensor] : problem.inputs) {
      EXPECT_EQ(tensor.offset % 64, 1) << name;
      EXPECT_EQ(tensor.stride[tensor.stride.size() - 2] % 2, 1) << name << ": rows of odd pitch";
      EXPECT_GT(tensor.stride[tensor.stride.size() - 2], tensor.shape.back()) << name << ": rows with a gap";
    }
    EXPECT_EQ(problem.input("gate").stride.back(), 3);
    EXPECT_EQ(problem.input("beta").stride.back(), 3);
  }
}

TEST(CasesRecurrence, PermutedTensorsAreDenseAndNotInCOrder) {
  bool differ = false;
  for (int seed = 1; seed <= 20; ++seed) {
    const Problem problem = problem_of("B=2,T=5,H=3,K=4,V=6,layout=permuted,seed=" + std::to_string(seed));
    for (const auto& [name, tensor] : problem.inputs) {
      EXPECT_NE(tensor.stride, contiguous_strides(tensor.shape, name));
      EXPECT_EQ(static_cast<Index>(tensor.buffer.size()), tensor.size() + 2 * Tensor::guard_elems);
    }
    differ = differ || problem.input("q").stride != problem.input("k").stride;
  }
  EXPECT_TRUE(differ) << "each tensor has an order of its own";
}

TEST(CasesRecurrence, BroadcastReachesEveryDimensionOfEveryTensor) {
  std::map<std::string, std::vector<int>> zeros;
  for (int seed = 1; seed <= 200; ++seed) {
    const Problem problem =
        problem_of("B=2,T=3,H=2,K=2,V=2,state=writes,layout=broadcast,seed=" + std::to_string(seed));
    int tensors_with_zero = 0;
    for (const auto& [name, tensor] : problem.inputs) {
      zeros[name].resize(tensor.stride.size());
      bool has_zero = false;
      for (std::size_t dimension = 0; dimension < tensor.stride.size(); ++dimension)
        if (tensor.stride[dimension] == 0) {
          ++zeros[name][dimension];
          has_zero = true;
        }
      tensors_with_zero += has_zero ? 1 : 0;
    }
    EXPECT_GE(tensors_with_zero, 1) << seed;
  }
  for (const auto& [name, counts] : zeros)
    for (const int count : counts) EXPECT_GE(count, 20) << name;
}

// What alternates, resets or has products that only stay small on average must not repeat along T.
TEST(CasesRecurrence, BroadcastKeepsGatesThatNeedTime) {
  for (const std::string gate : {"alternating", "log_uniform", "reset:2:0.5"})
    for (int seed = 1; seed <= 50; ++seed)
      EXPECT_NE(problem_of("T=8,H=2,layout=broadcast,gate=" + gate + ",seed=" + std::to_string(seed))
                    .input("gate")
                    .stride[1],
                0);
}

// Shrinking an extent cuts tensors and keeps what is left.
TEST(CasesRecurrence, SmallerExtentsKeepTheValuesThatRemain) {
  const std::string families = "gate=zeros,beta=normal,qkv=signed_zeros,state=writes,seed=3";
  const Problem large = problem_of("B=3,T=9,H=4,K=7,V=5," + families);
  const Problem small = problem_of("B=2,T=4,H=3,K=6,V=2," + families);
  for (const auto& [name, tensor] : small.inputs)
    for (Index element = 0; element < tensor.size(); ++element) {
      const Tensor& before = large.input(name);
      const std::vector<Index> at = subscripts(tensor.shape, element);
      Index position = before.offset;
      for (std::size_t dimension = 0; dimension < at.size(); ++dimension)
        position += at[dimension] * before.stride[dimension];
      EXPECT_TRUE(same_bits(tensor.buffer[static_cast<std::size_t>(tensor.position(element))],
                            before.buffer[static_cast<std::size_t>(position)]));
    }
}

TEST(CasesRecurrence, FamiliesOfOneTensorLeaveTheOthersAlone) {
  const Problem plain = problem_of("T=9,H=2,gate=one,beta=unit,qkv=normal");
  const Problem other = problem_of("T=9,H=2,gate=zeros,beta=large,qkv=normal");
  for (const std::string name : {"q", "k", "v"})
    EXPECT_EQ(plain.input(name).values(), other.input(name).values());
}

// Every gate family keeps the promise of its name, on 20 000 gates.
TEST(CasesRecurrence, GatesKeepThePromiseOfTheirFamily) {
  const std::string sizes = "B=2,T=200,H=50,K=1,V=1,gate=";
  for (const float g : values_of(sizes + "one", "gate")) EXPECT_EQ(g, 1.0F);
  for (const float g : values_of(sizes + "uniform", "gate")) EXPECT_TRUE(g >= 0 && g < 1);
  float least = 1;
  for (const float g : values_of(sizes + "near_one", "gate")) {
    EXPECT_TRUE(g >= 1 - 1e-3F && g <= 1);
    least = std::min(least, g);
  }
  EXPECT_LT(least, 1 - 0.99e-3F);
  int zeros = 0, positive = 0;
  for (const float g : values_of(sizes + "zeros", "gate")) {
    EXPECT_TRUE(g >= 0 && g < 1);
    zeros += g == 0 ? 1 : 0;
  }
  EXPECT_NEAR(zeros, 2000, 200);
  for (const float g : values_of(sizes + "negative", "gate")) {
    EXPECT_TRUE(g >= -1 && g < 1);
    positive += g > 0 ? 1 : 0;
  }
  EXPECT_NEAR(positive, 10000, 400);
  for (const float g : values_of(sizes + "tiny", "gate")) EXPECT_TRUE(g == 0 || (g > 1e-38F && g < 1e-30F));
  for (const float g : values_of(sizes + "subnormal", "gate")) EXPECT_EQ(std::fpclassify(g), FP_SUBNORMAL);
  float smallest = 1, largest = 1;
  for (const float g : values_of(sizes + "log_uniform", "gate")) {
    smallest = std::min(smallest, g);
    largest = std::max(largest, g);
  }
  EXPECT_LT(smallest, 2e-12F);
  EXPECT_GT(largest, 15.0F);
  for (const float g : values_of(sizes + "const:-0.75", "gate")) EXPECT_EQ(g, -0.75F);

  const Problem alternating = problem_of("T=5,gate=alternating");
  EXPECT_EQ(alternating.input("gate").values(), (std::vector<float>{2, 0.5F, 2, 0.5F, 2}));
  EXPECT_EQ(values_of("T=8,gate=reset:4:0.9", "gate"),
            (std::vector<float>{0, 0.9F, 0.9F, 0.9F, 0, 0.9F, 0.9F, 0.9F}));
}

// Largest product of neighbouring gates: e^4 for above_one, and below 1e8 for what is centred below 1.
TEST(CasesRecurrence, ProductsOfGatesStayBounded) {
  const auto largest_window = [](const std::string& gate, int T) {
    double largest = 0;
    for (int seed = 1; seed <= 20; ++seed) {
      const std::vector<float> gates = values_of(
          "K=1,V=1,gate=" + gate + ",T=" + std::to_string(T) + ",seed=" + std::to_string(seed), "gate");
      double product = 1;  // the largest over windows that end here
      for (const float g : gates) {
        product = std::max(1.0, product) * g;
        largest = std::max(largest, product);
      }
    }
    return largest;
  };
  for (const int T : {1, 2, 3, 4, 5, 64, 1000}) {
    EXPECT_GT(largest_window("above_one", T), 1);
    EXPECT_LT(largest_window("above_one", T), std::exp(4.0));
  }
  EXPECT_LT(largest_window("log_uniform", 1000), 1e8);
  EXPECT_EQ(largest_window("alternating", 1000), 2);
}

TEST(CasesRecurrence, AboveOneIsAboveOne) {
  for (const int T : {1, 3, 100, 300})
    for (const float g : values_of("H=20,gate=above_one,T=" + std::to_string(T), "gate")) EXPECT_GT(g, 1.0F);
}

/// Largest magnitude of a tensor.
float size_of(const Problem& problem, const std::string& tensor) {
  float largest = 0;
  for (const float x : problem.input(tensor).values()) largest = std::max(largest, std::abs(x));
  return largest;
}

TEST(CasesRecurrence, ValuesKeepThePromiseOfTheirFamily) {
  const std::string sizes = "B=2,T=20,H=5,K=6,V=6,";
  for (const float x : values_of(sizes + "beta=unit", "beta")) EXPECT_EQ(x, 1.0F);
  for (const float x : values_of(sizes + "beta=zero", "beta")) EXPECT_TRUE(same_bits(x, 0.0F));
  for (const std::string tensor : {"q", "k", "v", "beta"})
    for (const float x : values_of(sizes + "beta=integers,qkv=integers", tensor))
      EXPECT_TRUE(x == std::floor(x) && std::abs(x) <= 3);
  for (const float x : values_of(sizes + "qkv=no_keys", "k")) EXPECT_TRUE(same_bits(x, 0.0F));
  EXPECT_GT(size_of(problem_of(sizes + "qkv=no_keys"), "q"), 1);
  const Problem small = problem_of(sizes + "beta=small,qkv=small");
  for (const std::string tensor : {"q", "k", "v", "beta"}) {
    EXPECT_LT(size_of(small, tensor), 3e-3F);
    EXPECT_GT(size_of(small, tensor), 1e-3F);
  }
  bool has_negative_zero = false;
  for (const float x : values_of(sizes + "qkv=signed_zeros", "v"))
    has_negative_zero = has_negative_zero || same_bits(x, -0.0F);
  EXPECT_TRUE(has_negative_zero);
}

TEST(CasesRecurrence, DominantHasOneEntryInEachRow) {
  const Problem problem = problem_of("B=2,T=20,H=5,K=6,V=7,beta=dominant,qkv=dominant,state=writes");
  for (const std::string tensor : {"q", "k", "v", "initial_state"}) {
    const std::vector<float> values = problem.input(tensor).values();
    const auto extent = static_cast<std::size_t>(problem.input(tensor).shape.back());
    // An ordinary entry is below 3. A dominant one is 2^20 times a normal one, which is rarely below 3e-6.
    // That of the state is another 2^20 larger or not at all.
    for (std::size_t row = 0; row < values.size(); row += extent) {
      int dominant = 0;
      for (std::size_t i = 0; i < extent; ++i) dominant += std::abs(values[row + i]) > 3 ? 1 : 0;
      EXPECT_EQ(dominant, 1) << tensor;
    }
  }
  const std::vector<float> beta = problem.input("beta").values();
  int dominant = 0;
  for (const float x : beta) dominant += std::abs(x) > 3 ? 1 : 0;
  EXPECT_EQ(dominant, 2 * 5) << "one step of each (b,h)";
}

TEST(CasesRecurrence, OneOrTwoOfQKVAreLarge) {
  std::map<int, int> combinations;
  for (int seed = 1; seed <= 60; ++seed)
    for (const std::string beta : {"unit", "large", "dominant"}) {
      const Problem problem =
          problem_of("T=20,K=6,V=6,qkv=large,beta=" + beta + ",state=writes,seed=" + std::to_string(seed));
      int large = 0, combination = 0;
      for (const std::string tensor : {"q", "k", "v"}) {
        const bool is_large = size_of(problem, tensor) > 1e15F;
        large += is_large ? 1 : 0;
        combination = 2 * combination + (is_large ? 1 : 0);
      }
      EXPECT_GE(large, 1);
      EXPECT_LE(large, beta == "unit" ? 2 : 1);
      if (beta == "unit") ++combinations[combination];
      // The state has the size of beta·k·v.
      float written = (beta == "large" ? 0x1p50F : 1.0F);
      for (const std::string tensor : {"k", "v"})
        if (size_of(problem, tensor) > 1e15F) written *= 0x1p50F;
      EXPECT_LT(size_of(problem, "initial_state"), 3 * written);
      EXPECT_GT(size_of(problem, "initial_state"), written);
    }
  EXPECT_EQ(combinations.size(), 6U) << "every choice of one or two out of three";
}

TEST(CasesRecurrence, StatesAreThereWhenAsked) {
  EXPECT_FALSE(problem_of("state=none").inputs.contains("initial_state"));
  EXPECT_EQ(problem_of("B=2,H=3,K=4,V=5,state=writes").input("initial_state").shape,
            (std::vector<Index>{2, 3, 4, 5}));
  EXPECT_GT(size_of(problem_of("qkv=no_keys,beta=zero,state=writes"), "initial_state"), 0.5F)
      << "a state is not lost where nothing is written";
}

TEST(CasesRecurrence, NoStepsAtAllIsAProblem) {
  const Problem problem = problem_of("B=2,T=0,H=3,K=4,V=5,state=writes,beta=dominant,gate=above_one");
  EXPECT_EQ(problem.input("q").size(), 0);
  EXPECT_EQ(output_shapes(problem).at("y"), (std::vector<Index>{2, 0, 3, 5}));
  EXPECT_EQ(output_shapes(problem).at("final_state"), (std::vector<Index>{2, 3, 4, 5}));
}

TEST(CasesRecurrence, ProblemsCarryTheirCaseText) {
  const Case c = parse_case("recurrence:T=3,seed=77");
  EXPECT_EQ(make_problem(c).case_text, print_case(c));
}

TEST(CasesRecurrence, SimplerEndsAtTheSmallestPlainestCase) {
  const Case minimal = parse_case("recurrence:B=1,T=0,H=1,K=1,V=1,gate=one,beta=unit,qkv=integers,seed=1");
  EXPECT_TRUE(simpler(minimal).empty());
  Case c = parse_case(
      "recurrence:B=3,T=257,H=4,K=24,V=33,gate=reset:5:0.9,beta=dominant,qkv=large,state=writes,layout="
      "broadcast,"
      "seed=99");
  int steps = 0;
  while (!simpler(c).empty()) {
    c = simpler(c).front();
    ASSERT_LT(++steps, 100);
  }
  EXPECT_EQ(c, minimal);
}

// The first candidate that keeps `holds` true, until none does: what rapidcheck's shrinking does.
Case shrunk(Case c, const std::function<bool(const RecurrenceCase&)>& holds) {
  for (bool found = true; found;) {
    found = false;
    for (const Case& candidate : simpler(c))
      if (holds(std::get<RecurrenceCase>(candidate))) {
        c = candidate;
        found = true;
        break;
      }
  }
  return c;
}

TEST(CasesRecurrence, ShrinkingFindsTheSizesThatAFaultNeeds) {
  const Case start = parse_case(
      "recurrence:B=3,T=257,H=5,K=100,V=65,gate=negative,beta=large,qkv=dominant,state=writes,layout=padded,"
      "seed=5");
  EXPECT_EQ(
      print_case(shrunk(start, [](const RecurrenceCase& c) { return c.T >= 2 && c.K >= 3; })),
      "recurrence:B=1,T=2,H=1,K=3,V=1,gate=one,beta=unit,qkv=integers,state=none,layout=contiguous,seed=1");
  EXPECT_EQ(
      print_case(shrunk(start,
                        [](const RecurrenceCase& c) {
                          return c.T >= 33 && c.V >= 5 && c.gate.family != GateFamily::one &&
                                 c.layout == Layout::padded;
                        })),
      "recurrence:B=1,T=33,H=1,K=1,V=5,gate=uniform,beta=unit,qkv=integers,state=none,layout=padded,seed=1");
}

}  // namespace
}  // namespace gaugeblock
