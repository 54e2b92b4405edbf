// Which cases a campaign judges, and how often.
#include "gaugeblock/verify/report/campaign.h"

#include <gtest/gtest.h>

namespace gaugeblock {
namespace {

// Everything is declined, so that thousands of cases cost nothing.
std::vector<Variant> declining() {
  Variant variant = select_variants(Operation::recurrence, "sequential", "cpu").front();
  variant.declines = [](const Problem&) { return std::optional<std::string>("nothing is taken"); };
  return {variant};
}

TEST(Campaign, TakesEachLargeCaseOnce) {
  CampaignOptions options;
  options.operations = {Operation::recurrence};
  options.cases = 4000;
  options.largest_work = 100;
  options.large = {parse_case("axial:D=4,heads=2"), parse_case("axial:D=4,heads=1,weights=zero_qkv")};
  const CampaignReport report = run_campaign(declining(), options);
  EXPECT_EQ(report.cases, 4000U);
  const auto& weights = report.families.at("axial weights");
  ASSERT_EQ(weights.size(), 2U);
  for (const auto& [family, cases] : weights) EXPECT_EQ(cases, 1U) << family;
  EXPECT_EQ(report.variants[0].count[static_cast<std::size_t>(Outcome::unsupported)], 3998U);
  EXPECT_FALSE(report.all_pass()) << "nothing was judged";
}

TEST(Campaign, HasNoLargeCaseUnlessAsked) {
  CampaignOptions options;
  options.operations = {Operation::recurrence};
  options.cases = 1001;
  options.largest_work = 100;
  EXPECT_FALSE(run_campaign(declining(), options).families.contains("axial weights"));
}

TEST(Campaign, RepeatsTheStandInOfAuto) {
  Variant variant = select_variants(Operation::recurrence, "sequential", "cpu").front();
  variant.choose = [](const Problem&) {
    static const Variant stand_in = select_variants(Operation::recurrence, "sequential", "cpu").front();
    return ChosenVariant{&stand_in, "for this test"};
  };
  CampaignOptions options;
  options.given = {parse_case("recurrence:T=2,seed=1")};
  EXPECT_TRUE(run_campaign({variant}, options).all_pass());
  const auto other_bits = [run = variant.run](const Problem& problem, Outputs& outputs) {
    run(problem, outputs);
    Tensor& y = outputs.at("y");
    y.buffer[y.offset] += 1;
  };
  variant.run_again = {{other_bits}};  // as --repeats does
  EXPECT_FALSE(run_campaign({variant}, options).all_pass());
}

}  // namespace
}  // namespace gaugeblock
