// Every deliberately wrong form is caught, and the case that shows it shrinks to a small one.
#include "planted_faults.h"

#include <gtest/gtest.h>

#include "gaugeblock/verify/report/campaign.h"

namespace gaugeblock {
namespace {

class RecurrencePlantedFault : public testing::TestWithParam<std::size_t> {};

TEST_P(RecurrencePlantedFault, IsCaughtAndShrinks) {
  const PlantedFault fault = recurrence_planted_faults().at(GetParam());
  CampaignOptions options;
  options.operations = {Operation::recurrence};
  options.seed = 1;
  options.cases = 80;
  const CampaignReport report = run_campaign({fault.variant}, options);
  ASSERT_EQ(report.failures.size(), 1U)
      << fault.variant.summary << " was not caught in " << report.cases << " cases";
  const Failure& failure = report.failures.front();
  RecordProperty("caught_by", failure.result.verdict.reason);
  const auto simplest = std::get<RecurrenceCase>(parse_case(failure.simplest));
  EXPECT_LE(simplest.T, fault.needs_steps) << failure.simplest << " " << fault.needs_why;
  EXPECT_LE(simplest.K, 4) << failure.simplest;
  EXPECT_LE(simplest.V, 4) << failure.simplest;
  EXPECT_NE(failure.command.find(failure.simplest), std::string::npos);
  EXPECT_NE(failure.result.verdict.outcome, Outcome::pass);
  std::printf("%s: %s by %s, %s\n", fault.variant.name.c_str(),
              std::string(name(failure.result.verdict.outcome)).c_str(),
              failure.result.verdict.reason.c_str(), failure.simplest.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, RecurrencePlantedFault,
                         testing::Range(std::size_t{0}, recurrence_planted_faults().size()),
                         [](const testing::TestParamInfo<std::size_t>& info) {
                           return recurrence_planted_faults().at(info.param).variant.name;
                         });

// Gates within 1e-3 of 1: skipping one changes the result by less than the proved bound of a long sequence
// allows, so this one is for the likely limit or a relation.
TEST(RecurrenceSkippedGate, NearOneIsCaught) {
  for (const PlantedFault& fault : recurrence_planted_faults()) {
    if (fault.variant.name != "one_gate_skipped") continue;
    const Case c = parse_case(
        "recurrence:B=1,T=128,H=2,K=24,V=24,gate=near_one,beta=uniform,qkv=normal,state=none,seed=7");
    const CaseVerdict result = check_case({&fault.variant}, c, RelationEffort::all).front();
    EXPECT_TRUE(result.verdict.outcome == Outcome::suspect || result.verdict.outcome == Outcome::fail)
        << name(result.verdict.outcome);
  }
}

}  // namespace
}  // namespace gaugeblock
