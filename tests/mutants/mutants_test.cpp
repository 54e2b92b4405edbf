// Every mutant is killed by the default campaign, for a reason that has a name; and the list of mutants is
// what it claims to be.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/report/campaign.h"
#include "gaugeblock/verify/verdict/verdict.h"
#include "kill_table.h"
#include "mutant.h"

namespace gaugeblock {
namespace {

// Of the campaign's 1000. Nearly all mutants fall within the first sixteen; those that need a size or a
// family that is seldom drawn take longer.
constexpr std::uint64_t case_budget = 100;

class MutantTest : public testing::TestWithParam<std::size_t> {
 protected:
  static const Mutant& mutant() { return all_mutants().at(GetParam()); }
};

TEST_P(MutantTest, IsKilled) {
  const Kill result = kill(mutant(), case_budget);
  ASSERT_TRUE(result.killed) << mutant().variant.summary << " (needs: " << mutant().needs << ")";
  const std::string& reason = result.reason;
  EXPECT_TRUE(reason == "proved" || reason == "likely" || reason == "run property" ||
              reason == "interpreter" || reason.starts_with("relation "))
      << reason << ": " << result.message;
  std::printf("%s: %s, case %d, %.2f s\n  %s\n  %s\n", mutant().variant.name.c_str(), reason.c_str(),
              static_cast<int>(result.cases), result.seconds, result.case_text.c_str(),
              result.message.c_str());
}

std::string id_of(const testing::TestParamInfo<std::size_t>& info) {
  return all_mutants().at(info.param).variant.name;
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest, testing::Range(std::size_t{0}, all_mutants().size()), id_of);

TEST(Mutants, AreManyOfEveryKind) {
  EXPECT_GE(all_mutants().size(), 80U);
  std::set<std::string> ids;
  std::map<Kind, int> all, hidden;
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_TRUE(ids.insert(mutant.variant.name).second) << mutant.variant.name << " is there twice";
    EXPECT_FALSE(mutant.variant.summary.empty() || mutant.seen.empty() || mutant.needs.empty())
        << mutant.variant.name;
    ++all[mutant.kind];
    hidden[mutant.kind] += mutant.hides ? 1 : 0;
  }
  for (int kind = 0; kind < kind_count; ++kind) {
    EXPECT_GE(all[static_cast<Kind>(kind)], 2) << name(static_cast<Kind>(kind));
    EXPECT_GE(hidden[static_cast<Kind>(kind)], 2) << name(static_cast<Kind>(kind));
  }
}

// What is said to hide from the proved bound does so on inputs as people usually draw them: another check, or
// the campaign's inputs, are what kills it.
TEST(Mutants, ThatHideStayWithinTheProvedBoundOnUsualInputs) {
  for (const Operation operation : {Operation::recurrence, Operation::axial})
    for (const std::string backend : {"cpu", "simt"}) {
      const Problem problem = make_problem(usual_case(operation, backend, 0));
      const std::unique_ptr<Oracle> oracle = make_oracle(problem);
      for (const Mutant& mutant : all_mutants()) {
        const Variant& variant = mutant.variant;
        if (!mutant.hides || variant.operation != operation || variant.backend != backend) continue;
        Problem copy = problem;
        Outputs outputs = make_outputs(problem);
        (mutant.unwatched ? mutant.unwatched : variant.run)(copy, outputs);
        EXPECT_NE(judge_outputs(problem, *oracle, outputs, variant.arithmetic, Limits::proved_only).outcome,
                  Outcome::fail)
            << variant.name;
      }
    }
}

// Gates within 1e-3 of 1: skipping one changes the result by less than the proved bound of a long sequence
// allows, so this one is for the likely limit or a relation.
TEST(Mutants, ThatSkipAGateNearOneAreCaught) {
  const Case c = parse_case(
      "recurrence:B=1,T=128,H=2,K=24,V=24,gate=near_one,beta=uniform,qkv=normal,state=none,seed=7");
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.variant.name != "one_gate_skipped") continue;
    const CaseVerdict result = check_case({&mutant.variant}, c, RelationEffort::all).front();
    EXPECT_TRUE(result.verdict.outcome == Outcome::suspect || result.verdict.outcome == Outcome::fail)
        << name(result.verdict.outcome);
    return;
  }
  FAIL() << "no mutant skips one gate";
}

// The case that shows a fault shrinks to a small one: no larger than the fault needs.
TEST(Mutants, ShrinkToWhatTheyNeed) {
  const std::map<std::string, Index> steps{
      {"gate_after_write", 4},      {"last_lane_dropped", 4},    {"reads_previous_state", 4},
      {"q_in_11_bits", 4},          {"one_write_lost", 4},       {"state_ignored", 4},
      {"one_gate_skipped", 4},      {"nan_written", 4},          {"element_not_written", 4},
      {"input_overwritten", 4},     {"writes_behind_output", 4}, {"changes_from_run_to_run", 4},
      {"decay_short_at_border", 17}};  // the first border lies behind 16 steps
  std::size_t found = 0;
  for (const Mutant& mutant : all_mutants()) {
    const auto expected = steps.find(mutant.variant.name);
    if (expected == steps.end()) continue;
    ++found;
    const Kill result = kill(mutant, case_budget);
    ASSERT_TRUE(result.killed) << mutant.variant.name;
    const auto simplest = std::get<RecurrenceCase>(shrink(mutant.variant, parse_case(result.case_text)));
    EXPECT_LE(simplest.T, expected->second) << mutant.variant.name << ": " << print_case(simplest);
    EXPECT_LE(simplest.K, 4) << mutant.variant.name << ": " << print_case(simplest);
    EXPECT_LE(simplest.V, 4) << mutant.variant.name << ": " << print_case(simplest);
  }
  EXPECT_EQ(found, steps.size());
}

}  // namespace
}  // namespace gaugeblock
