// What holds for every case of both operations.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gaugeblock/verify/cases/arbitrary_case.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

constexpr double largest_work = 20'000;

/// A case of either operation.
rc::Gen<Case> any_case() {
  return rc::gen::oneOf(arbitrary_case(Operation::recurrence, largest_work),
                        arbitrary_case(Operation::axial, largest_work));
}

RC_GTEST_PROP(CasesProperties, PrintedCasesReadBackEqual, ()) {
  const Case c = *any_case();
  RC_ASSERT(parse_case(print_case(c)) == c);
  RC_ASSERT(print_case(parse_case(print_case(c))) == print_case(c));
}

RC_GTEST_PROP(CasesProperties, KeysMayComeInAnyOrder, ()) {
  const Case c = *any_case();
  CaseText text = parse_case_text(print_case(c));
  // rapidcheck has no generator of permutations: sorts by drawn numbers.
  std::vector<std::pair<int, std::pair<std::string, std::string>>> keyed;
  for (const auto& field : text.fields) keyed.emplace_back(*rc::gen::arbitrary<int>(), field);
  std::sort(keyed.begin(), keyed.end());
  for (std::size_t i = 0; i < keyed.size(); ++i) text.fields[i] = keyed[i].second;
  RC_ASSERT(parse_case(print_case_text(text)) == c);
}

// A changed, added or removed letter gives another case or one clear line; never a crash, never something
// else.
RC_GTEST_PROP(CasesProperties, DamagedTextsAreRefusedInOneLineOrMeanAnotherCase, ()) {
  std::string text = print_case(*any_case());
  const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
  const std::string letter =
      *rc::gen::element<std::string>("", "=", ",", ":", "-", "9", "x", " ", "\n", ".", "e");
  text.replace(place, *rc::gen::inRange<std::size_t>(0, 3), letter);
  try {
    const Case c = parse_case(text);
    RC_ASSERT(parse_case(print_case(c)) == c);
  } catch (const InputError& error) {
    const std::string line = error.what();
    RC_ASSERT(line.find('\n') == std::string::npos);
    RC_ASSERT(line.find("expected") != std::string::npos);
    RC_ASSERT(line.find("found") != std::string::npos);
  }
}

RC_GTEST_PROP(CasesProperties, CasesStayWithinTheWorkAskedFor, ()) {
  const double limit = std::ldexp(1.0, *rc::gen::inRange(8, 22));
  RC_ASSERT(work(*arbitrary_case(Operation::recurrence, limit)) <= limit);
  RC_ASSERT(work(*arbitrary_case(Operation::axial, limit)) <= limit);
}

RC_GTEST_PROP(CasesProperties, EveryCaseMakesAFiniteProblemBetweenIntactGuards, ()) {
  const Case c = *any_case();
  const Problem problem = make_problem(c);
  RC_ASSERT(problem.operation == operation_of(c));
  RC_ASSERT(problem.case_text == print_case(c));
  check_problem(problem);
  for (const auto& [name, tensor] : problem.inputs) {
    for (const float value : tensor.values()) RC_ASSERT(std::isfinite(value));
    RC_ASSERT(tensor.damaged_guards() == 0);
    for (Index guard = 0; guard < Tensor::guard_elems; ++guard) {
      RC_ASSERT(same_bits(tensor.buffer[static_cast<std::size_t>(guard)], poison()));
      RC_ASSERT(
          same_bits(tensor.buffer[tensor.buffer.size() - 1 - static_cast<std::size_t>(guard)], poison()));
    }
  }
  for (const auto& [name, tensor] : make_outputs(problem, true)) {
    RC_ASSERT(tensor.shape == output_shapes(problem).at(name));
    for (const float value : tensor.buffer) RC_ASSERT(same_bits(value, poison()));
  }
}

RC_GTEST_PROP(CasesProperties, TheSameCaseMakesTheSameBits, ()) {
  const Case c = *any_case();
  const Problem problem = make_problem(c), again = make_problem(parse_case(print_case(c)));
  for (const auto& [name, tensor] : problem.inputs) {
    const Tensor& other = again.input(name);
    RC_ASSERT(tensor.stride == other.stride);
    RC_ASSERT(tensor.offset == other.offset);
    RC_ASSERT(std::equal(tensor.buffer.begin(), tensor.buffer.end(), other.buffer.begin(), other.buffer.end(),
                         same_bits));
  }
}

// Padding and permuting move values and change none.
RC_GTEST_PROP(CasesProperties, DenseLayoutsKeepTheValues, ()) {
  CaseText text = parse_case_text(print_case(*any_case()));
  const auto with_layout = [&](const std::string& layout) {
    for (auto& [key, value] : text.fields)
      if (key == "layout") value = layout;
    return make_problem(parse_case(print_case_text(text)));
  };
  const Problem contiguous = with_layout("contiguous");
  for (const std::string layout : {"padded", "permuted"}) {
    const Problem other = with_layout(layout);
    RC_ASSERT(other.inputs.size() == contiguous.inputs.size());
    for (const auto& [name, tensor] : contiguous.inputs) {
      const std::vector<float> before = tensor.values(), after = other.input(name).values();
      RC_ASSERT(std::equal(before.begin(), before.end(), after.begin(), after.end(), same_bits));
    }
  }
}

/// What every candidate lowers, in this order: extents, then how far families are from the plainest, then the
/// seed.
using Measure = std::tuple<Index, Index, bool>;

Measure measure(const RecurrenceCase& c) {
  return {c.B + c.T + c.H + c.K + c.V,
          static_cast<Index>(c.gate.family) + c.gate.period + static_cast<Index>(c.beta) +
              static_cast<Index>(c.qkv) + static_cast<Index>(c.state) + static_cast<Index>(c.layout),
          c.seed != 1};
}

Measure measure(const AxialCase& c) {
  return {c.B + c.H + c.W + c.D + c.heads,
          Index{c.passes == AxialPasses::both} + Index{c.eps != 1e-5F} + static_cast<Index>(c.x.family) +
              static_cast<Index>(c.weights) + static_cast<Index>(c.layout),
          c.seed != 1};
}

Measure measure(const Case& c) {
  return std::visit([](const auto& of_operation) { return measure(of_operation); }, c);
}

// A measure that falls with every step and is never negative: shrinking ends, whatever a fault lets through.
RC_GTEST_PROP(CasesProperties, EveryCandidateIsSimplerLegalAndNew, ()) {
  const Case c = *any_case();
  const std::vector<Case> candidates = simpler(c);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    RC_ASSERT(measure(candidates[i]) < measure(c));
    RC_ASSERT(work(candidates[i]) <= work(c));
    RC_ASSERT(parse_case(print_case(candidates[i])) == candidates[i]);
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(!(candidates[i] == candidates[j]));
  }
}

// Mostly the last candidate: the slowest way down, one less at a time.
RC_GTEST_PROP(CasesProperties, ShrinkingEndsSoonOnASlowWayToo, ()) {
  Case c = *any_case();
  int steps = 0;
  for (std::vector<Case> candidates = simpler(c); !candidates.empty(); candidates = simpler(c)) {
    c = candidates[std::min(candidates.size() - 1, *rc::gen::inRange<std::size_t>(0, 2 * candidates.size()))];
    RC_ASSERT(++steps < 2000);
  }
}

// The shrinks of the generator are the cases of simpler().
TEST(CasesProperties, TheGeneratorShrinksBySimpler) {
  for (const Operation operation : {Operation::recurrence, Operation::axial}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const rc::Shrinkable<Case> shrinkable = arbitrary_case(operation, largest_work)(rc::Random(seed), 10);
      std::vector<Case> shrinks;
      auto sequence = shrinkable.shrinks();
      for (auto next = sequence.next(); next; next = sequence.next()) shrinks.push_back(next->value());
      EXPECT_EQ(shrinks, simpler(shrinkable.value()));
    }
  }
}

// The whole machine once: a property that fails from T = 3 and K = 2 on is reported as the smallest such
// case.
TEST(CasesProperties, RapidcheckReportsTheSmallestCounterexampleAsACommand) {
  const auto result = rc::detail::checkTestable(
      [] {
        const Case c = *arbitrary_case(Operation::recurrence, largest_work);
        const auto& recurrence = std::get<RecurrenceCase>(c);
        RC_ASSERT(recurrence.T < 3 || recurrence.K < 2);
      },
      rc::detail::TestMetadata(), rc::detail::TestParams());
  ASSERT_TRUE(result.is<rc::detail::FailureResult>());
  const auto& counterexample = result.get<rc::detail::FailureResult>().counterExample;
  ASSERT_EQ(counterexample.size(), 1U);
  EXPECT_EQ(
      counterexample.front().second,
      "gaugeblock verify --case 'recurrence:B=1,T=3,H=1,K=2,V=1,gate=one,beta=unit,qkv=integers,state=none,"
      "layout=contiguous,seed=1'");
}

// A campaign, as `gaugeblock verify --seed 1 --cases 3000` runs it.
class CasesCampaign : public testing::TestWithParam<Operation> {
 protected:
  static constexpr std::uint64_t cases = 3000;
  std::vector<Case> campaign(std::uint64_t seed) const {
    std::vector<Case> all;
    for (std::uint64_t index = 0; index < cases; ++index)
      all.push_back(campaign_case(GetParam(), seed, index));
    return all;
  }
};

TEST_P(CasesCampaign, EveryFamilyComesOften) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const Case& c : campaign(1))
    for (const auto& family : families(c)) ++counts[family];
  std::map<std::string, int> kinds;
  for (const auto& [family, count] : counts) {
    EXPECT_GT(count, 100) << family.first << "=" << family.second;
    ++kinds[family.first];
  }
  if (GetParam() == Operation::recurrence)
    EXPECT_EQ(kinds, (std::map<std::string, int>{
                         {"gate", 12}, {"beta", 9}, {"qkv", 8}, {"state", 2}, {"layout", 4}}));
  else
    EXPECT_EQ(kinds, (std::map<std::string, int>{{"x", 8}, {"weights", 7}, {"passes", 3}, {"layout", 4}}));
}

TEST_P(CasesCampaign, WorkIsSpread) {
  std::vector<double> works;
  double total = 0;
  const std::vector<Case> all = campaign(1);
  for (const Case& c : all) {
    works.push_back(work(c));
    total += works.back();
  }
  std::sort(works.begin(), works.end());
  for (std::size_t index = 20; index < all.size(); ++index)  // behind the opening list
    EXPECT_LE(work(all[index]), 1.5e6) << print_case(all[index]);
  EXPECT_GT(works.back(), 5e5) << "large problems come";
  EXPECT_GT(works[cases / 2], 1e3);
  EXPECT_LT(works[cases / 2], 3e4) << "small problems are common";
  EXPECT_LT(total / cases, 1.5e5) << "a campaign is quick";
}

TEST_P(CasesCampaign, CasesDependOnSeedAndIndexAndSeldomRepeat) {
  const std::vector<Case> first = campaign(1), other = campaign(2);
  EXPECT_EQ(campaign_case(GetParam(), 1, 2999), first.back());
  std::map<std::string, int> seen;
  for (const auto& all : {first, other})
    for (const Case& c : all) ++seen[print_case(c)];
  EXPECT_EQ(seen.size(), 2 * cases);
}

INSTANTIATE_TEST_SUITE_P(Operations, CasesCampaign, testing::Values(Operation::recurrence, Operation::axial),
                         [](const auto& info) { return std::string(name(info.param)); });

// Sizes at which kernels go wrong come in a campaign: around a warp, around chunks, no power of two, K unlike
// V.
TEST(CasesCampaignSizes, EdgesComeInACampaign) {
  std::map<Index, int> times, keys;
  int unequal = 0;
  for (std::uint64_t index = 0; index < 3000; ++index) {
    const auto c = std::get<RecurrenceCase>(campaign_case(Operation::recurrence, 1, index));
    ++times[c.T];
    ++keys[c.K];
    unequal += c.K != c.V ? 1 : 0;
  }
  for (const Index T :
       {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257})
    EXPECT_GE(times[T], 20) << "T=" << T;
  for (const Index K : {1, 2, 3, 5, 7, 24, 31, 32, 33, 48, 60, 64, 100, 128})
    EXPECT_GE(keys[K], 20) << "K=" << K;
  EXPECT_GT(unequal, 1500);
}

// The first cases of every campaign: the quoted size is there once, and rows that other kernels got wrong.
TEST(CasesCampaignSizes, CampaignsOpenWithInformativeCases) {
  std::map<std::string, int> opened;
  for (std::uint64_t index = 0; index < opening_recurrence_cases().size(); ++index) {
    RecurrenceCase c = std::get<RecurrenceCase>(campaign_case(Operation::recurrence, 1, index));
    EXPECT_LE(work(c), 4e6);
    c.seed = 1;
    EXPECT_EQ(c, opening_recurrence_cases()[index]);
    ++opened[print_case_text(case_text(c))];
  }
  EXPECT_EQ(opened.size(), opening_recurrence_cases().size());
  EXPECT_EQ(opened["recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=unit,qkv=normal,state=none,"
                   "layout=contiguous,seed=1"],
            1);
}

}  // namespace
}  // namespace gaugeblock
