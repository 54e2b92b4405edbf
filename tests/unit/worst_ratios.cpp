// The figures in proofs_notes/README.md cannot rot: a small search still comes near every bound, and nothing
// exceeds one.
#include "worst_ratios.h"

#include <gtest/gtest.h>

#include <set>

namespace gaugeblock {
namespace {

TEST(WorstRatios, BadInputsComeNearTheBoundsAndNeverExceedThem) {
  const SearchEffort small{.candidates = 6, .sweeps = 1, .longest = 16, .widest = 2};
  const WorstRatios worst = search_worst_ratios(1, small);
  std::set<std::string> measured;
  for (const auto& [claim, found] : worst) {
    EXPECT_LE(found.ratio, 1) << claim << ": " << found.where;
    if (found.ratio > 0) measured.insert(claim);
  }
  for (const char* claim : {"recurrence.sequential.running",
                            "recurrence.sequential.state",
                            "recurrence.sequential.output",
                            "recurrence.masked_attention.state",
                            "recurrence.masked_attention.output",
                            "recurrence.scan.state",
                            "recurrence.scan.output",
                            "recurrence.prefix_product.state",
                            "recurrence.prefix_product.output",
                            "recurrence.prefix_product_segmented",
                            "recurrence.chunked.state",
                            "recurrence.chunked.output",
                            "recurrence.any_form.state",
                            "recurrence.any_form.output",
                            "axial.layer_norm.two_pass",
                            "axial.layer_norm.one_pass",
                            "axial.linear",
                            "axial.attention.two_pass",
                            "axial.attention.online",
                            "axial.residual",
                            "axial.block",
                            "axial.any_form"})
    EXPECT_TRUE(measured.contains(claim)) << claim << " was not measured";
  EXPECT_GE(worst.at("recurrence.sequential.running").ratio, 0.3);
}

TEST(WorstRatios, GeneratedProblemsStayWithinEveryBound) {
  const WorstRatios worst = campaign_worst_ratios(3, 40);
  for (const auto& [claim, found] : worst) EXPECT_LE(found.ratio, 1) << claim << ": " << found.where;
  EXPECT_GT(worst.size(), 20U);
}

TEST(WorstRatios, TheSearchIsDeterministic) {
  const SearchEffort tiny{.candidates = 2, .sweeps = 0, .longest = 4, .widest = 1};
  const WorstRatios first = search_worst_ratios(5, tiny);
  const WorstRatios second = search_worst_ratios(5, tiny);
  for (const auto& [claim, found] : first) {
    EXPECT_EQ(found.ratio, second.at(claim).ratio) << claim;
    EXPECT_EQ(found.where, second.at(claim).where) << claim;
  }
}

}  // namespace
}  // namespace gaugeblock
