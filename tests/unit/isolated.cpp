// A variant that takes its process with it costs one verdict.
#include "gaugeblock/verify/report/isolated.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

Variant sequential() {
  return select_variants(Operation::recurrence, "sequential", "cpu").front();
}

Variant with_run(const std::string& name, std::function<void(const Problem&, Outputs&)> run) {
  Variant variant = sequential();
  variant.name = name;
  variant.run = std::move(run);
  return variant;
}

// In the order in which they are judged: what comes after a broken one shows that nothing was spoiled.
std::vector<Variant> well_and_broken() {
  return {sequential(),
          with_run("killed", [](const Problem&, Outputs&) { kill(getpid(), SIGKILL); }),
          sequential(),
          with_run("silent", [](const Problem&, Outputs&) { pause(); }),
          with_run("throwing", [](const Problem&, Outputs&) { throw std::runtime_error("no"); }),
          with_run("leaving", [](const Problem&, Outputs&) { _exit(7); }),
          sequential()};
}

TEST(IsolatedChecker, ABrokenVariantCostsOneVerdict) {
  const std::vector<Variant> variants = well_and_broken();
  std::vector<const Variant*> chosen;
  for (const Variant& variant : variants) chosen.push_back(&variant);
  IsolatedChecker checker = std::move(IsolatedChecker::several(variants, 1, 1.0).front());
  const std::vector<CaseVerdict> results =
      checker.check(chosen, parse_case("recurrence:T=3,K=2,V=2"), RelationEffort::some);
  ASSERT_EQ(results.size(), variants.size());
  const std::vector<std::string> messages{"",   "the process that ran it ended: signal 9 (Killed)",
                                          "",   "the process that ran it ended: it gave no answer in time",
                                          "no", "the process that ran it ended: exit code 7",
                                          ""};
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].verdict.outcome, messages[i].empty() ? Outcome::pass : Outcome::error) << i;
    EXPECT_EQ(results[i].message, messages[i]) << i;
  }
}

// Ctrl-C reaches the whole group: the case at hand is finished all the same, and the parent decides what then.
TEST(IsolatedChecker, AnInterruptLeavesTheCaseAtHandAlone) {
  const std::vector<Variant> variants{with_run("interrupted", [](const Problem& problem, Outputs& outputs) {
    raise(SIGINT);
    raise(SIGTERM);
    sequential().run(problem, outputs);
  })};
  IsolatedChecker checker = std::move(IsolatedChecker::several(variants, 1, 10.0).front());
  const auto results =
      checker.check({&variants[0]}, parse_case("recurrence:T=3,K=2,V=2"), RelationEffort::some);
  EXPECT_EQ(results.front().verdict.outcome, Outcome::pass) << results.front().message;
}

TEST(IsolatedChecker, GivesTheVerdictsOfThisProcess) {
  const std::vector<Variant> variants{sequential(),
                                      with_run("wrong", [](const Problem& problem, Outputs& outputs) {
                                        sequential().run(problem, outputs);
                                        Tensor& y = outputs.at("y");
                                        std::vector<float> values = y.values();
                                        values[1] = 5e3F;
                                        y.assign(values);
                                      })};
  const Case c = parse_case("recurrence:T=3,K=2,V=2,seed=4");
  // The states from the second step on are beyond float32, so nothing of the final state can be judged.
  const Case huge = parse_case("recurrence:T=3,K=2,V=2,gate=const:1e30");
  IsolatedChecker checker = std::move(IsolatedChecker::several(variants, 1).front());
  for (const Case& each : {c, huge})
    for (const Variant& variant : variants) {
      const CaseVerdict here = check_case({&variant}, each, RelationEffort::all).front();
      const CaseVerdict there = checker.check({&variant}, each, RelationEffort::all).front();
      EXPECT_EQ(here.verdict.outcome, there.verdict.outcome);
      EXPECT_EQ(here.verdict.reason, there.verdict.reason);
      EXPECT_EQ(here.verdict.worst_ratio, there.verdict.worst_ratio);
      EXPECT_EQ(here.verdict.worst_likely_ratio, there.verdict.worst_likely_ratio);
      EXPECT_EQ(here.verdict.worst.tensor, there.verdict.worst.tensor);
      EXPECT_EQ(here.verdict.worst.index, there.verdict.worst.index);
      EXPECT_EQ(here.verdict.worst.actual, there.verdict.worst.actual);
      EXPECT_EQ(here.verdict.worst.bound, there.verdict.worst.bound);
      EXPECT_EQ(here.verdict.compared, there.verdict.compared);
      EXPECT_EQ(here.verdict.vacuous_elements, there.verdict.vacuous_elements);
      EXPECT_EQ(here.verdict.unjudged, there.verdict.unjudged);
      EXPECT_EQ(here.message, there.message);
    }
  EXPECT_EQ(check_case({&variants[1]}, c, RelationEffort::all).front().verdict.outcome, Outcome::fail);
  EXPECT_EQ(check_case({&variants[0]}, huge, RelationEffort::all).front().verdict.unjudged,
            std::vector<std::string>{"final_state"});
}

TEST(IsolatedChecker, AnImpossibleCaseIsRefusedAndTheNextIsJudged) {
  const std::vector<Variant> variants{sequential()};
  IsolatedChecker checker = std::move(IsolatedChecker::several(variants, 1).front());
  Case impossible = parse_case("recurrence:T=3,K=2,V=2");
  std::get<RecurrenceCase>(impossible).K = 0;
  EXPECT_THROW(checker.check({&variants[0]}, impossible, RelationEffort::some), InputError);
  EXPECT_EQ(checker.check({&variants[0]}, parse_case("recurrence:T=3,K=2,V=2"), RelationEffort::some)
                .front()
                .verdict.outcome,
            Outcome::pass);
}

TEST(IsolatedChecker, ACampaignGoesOnAndShrinks) {
  const std::vector<Variant> variants = {sequential(),
                                         with_run("killed", [](const Problem& problem, Outputs&) {
                                           if (problem.input("v").size() > 6) kill(getpid(), SIGKILL);
                                           throw std::runtime_error("small");
                                         })};
  CampaignOptions options;
  options.operations = {Operation::recurrence};
  options.cases = 12;
  options.jobs = 2;
  options.isolated = true;
  const CampaignReport report = run_campaign(variants, options);
  EXPECT_EQ(report.cases, 12U);
  EXPECT_EQ(report.variants[0].count[static_cast<std::size_t>(Outcome::error)], 0U);
  EXPECT_EQ(report.variants[1].count[static_cast<std::size_t>(Outcome::error)], 12U);
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures[0].result.verdict.outcome, Outcome::error);
}

}  // namespace
}  // namespace gaugeblock
