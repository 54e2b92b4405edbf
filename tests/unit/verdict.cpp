// The verdict is itself under test: NaN on either side, infinities, zero bounds, sizes that differ.
#include "gaugeblock/verify/verdict/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

/// One row of elements.
Verdict judge(std::vector<float> actual, std::vector<double> expected, std::vector<double> proved,
              std::vector<double> likely, Limits limits = Limits::proved_and_likely) {
  return judge_tensor({"y", {static_cast<Index>(actual.size())}, actual, expected, proved, likely}, limits);
}

TEST(Verdict, PassesWithinBothLimits) {
  const Verdict verdict = judge({1.0F, 2.5F}, {1.25, 2.5}, {0.5, 0.5}, {0.25, 0.25});
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.worst_ratio, 0.5);
  EXPECT_EQ(verdict.worst_likely_ratio, 1.0);
  EXPECT_EQ(verdict.compared, 2);
  EXPECT_EQ(verdict.worst.index, (std::vector<Index>{0}));
}

TEST(Verdict, SuspectsBeyondLikely) {
  EXPECT_EQ(judge({1.0F}, {1.25}, {0.5}, {0.125}).outcome, Outcome::suspect);
  EXPECT_EQ(judge({1.0F}, {1.25}, {0.5}, {0.125}, Limits::proved_only).outcome, Outcome::pass);
}

TEST(Verdict, FailsBeyondProved) {
  const Verdict verdict = judge({1.0F, 1.0F, 1.0F}, {1.0, 1.25, 1.125}, {0.0625, 0.0625, 0.0625}, {1, 1, 1});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_EQ(verdict.reason, "proved");
  EXPECT_EQ(verdict.worst.index, (std::vector<Index>{1}));
  EXPECT_EQ(verdict.worst_ratio, 4.0);
}

TEST(Verdict, NanFails) {
  const float actual_nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(judge({actual_nan}, {1.0}, {0.5}, {0.5}).outcome, Outcome::fail);
  EXPECT_EQ(judge({actual_nan}, {1.0}, {infinity}, {0.5}).outcome, Outcome::suspect);
  EXPECT_EQ(judge({actual_nan, 1.0F}, {0.0, 1.0}, {0.5, 0.5}, {0.5, 0.5}).outcome, Outcome::fail);
  // A bound or limit that is NaN rejects whatever is compared with it.
  EXPECT_NE(judge({1.5F}, {1.0}, {nan}, {0.25}).outcome, Outcome::pass);
  EXPECT_NE(judge({1.5F}, {1.0}, {nan}, {nan}).outcome, Outcome::pass);
}

TEST(Verdict, NanExpectedIsVacuousAndNeverPasses) {
  EXPECT_EQ(judge({1.0F}, {nan}, {0.5}, {0.5}).outcome, Outcome::vacuous);
  EXPECT_EQ(judge({std::numeric_limits<float>::quiet_NaN()}, {nan}, {0.5}, {0.5}).outcome, Outcome::vacuous);
}

TEST(Verdict, InfinityFails) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(judge({inf}, {1.0}, {0.5}, {0.5}).outcome, Outcome::fail);
  EXPECT_EQ(judge({-inf}, {1.0}, {0.5}, {0.5}).outcome, Outcome::fail);
}

TEST(Verdict, BeyondFloatRangeIsVacuous) {
  const Verdict verdict = judge({std::numeric_limits<float>::infinity()}, {1e39}, {1.0}, {1.0});
  EXPECT_EQ(verdict.outcome, Outcome::vacuous);
  EXPECT_EQ(verdict.vacuous_elements, 1);
}

TEST(Verdict, ZeroBoundWantsTheExactValue) {
  EXPECT_EQ(judge({1.0F}, {1.0}, {0.0}, {0.0}).outcome, Outcome::pass);
  EXPECT_EQ(judge({1.0F}, {1.0}, {0.0}, {0.0}).worst_ratio, 0.0);
  const Verdict verdict = judge({std::nextafter(1.0F, 2.0F)}, {1.0}, {0.0}, {0.0});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_EQ(verdict.worst_ratio, infinity);
}

TEST(Verdict, InfiniteBoundIsVacuousNeverAPass) {
  EXPECT_EQ(judge({1.0F}, {1.0}, {infinity}, {infinity}).outcome, Outcome::vacuous);
  EXPECT_EQ(judge({1.0F}, {1.0}, {infinity}, {0.5}).outcome, Outcome::pass);
  EXPECT_EQ(judge({1.0F}, {1.0}, {infinity}, {0.5}, Limits::proved_only).outcome, Outcome::vacuous);
}

TEST(Verdict, BoundThatWouldLetZerosThroughIsVacuous) {
  EXPECT_EQ(judge({1.0F, 1.0F}, {1.0, 1.0}, {2.0, 2.0}, {infinity, infinity}).outcome, Outcome::vacuous);
  // Beyond even a wide bound is still wrong.
  EXPECT_EQ(judge({9.0F, 1.0F}, {1.0, 1.0}, {2.0, 2.0}, {infinity, infinity}).outcome, Outcome::fail);
  // One element of the row that rejects zeros makes the row useful.
  EXPECT_EQ(judge({1.0F, 4.0F}, {1.0, 4.0}, {2.0, 2.0}, {infinity, infinity}).outcome, Outcome::pass);
}

TEST(Verdict, TrueZerosAreJudged) {
  EXPECT_EQ(judge({0.0F, 0.0F}, {0.0, 0.0}, {1e-40, 1e-40}, {1e-40, 1e-40}).outcome, Outcome::pass);
  EXPECT_EQ(judge({0.0F, 1.0F}, {0.0, 0.0}, {1e-40, 1e-40}, {1e-40, 1e-40}).outcome, Outcome::fail);
}

TEST(Verdict, SizesThatDifferAreRefused) {
  EXPECT_THROW(judge({1.0F, 2.0F}, {1.0}, {0.5}, {0.5}), std::logic_error);
  EXPECT_THROW(judge({1.0F}, {1.0}, {0.5, 0.5}, {0.5}), std::logic_error);
  EXPECT_THROW(judge({1.0F}, {1.0}, {0.5}, {}), std::logic_error);
}

TEST(Verdict, MergeKeepsTheGraverAndCounts) {
  Verdict all = judge({1.0F}, {1.0}, {0.5}, {0.5});
  all.merge(judge({1.0F}, {1.0}, {infinity}, {infinity}));
  EXPECT_EQ(all.outcome, Outcome::pass);
  EXPECT_EQ(all.vacuous_elements, 1);
  all.merge(judge({9.0F}, {1.0}, {0.5}, {0.5}));
  EXPECT_EQ(all.outcome, Outcome::fail);
  EXPECT_EQ(all.worst.actual, 9.0);
  all.merge(judge({1.0F}, {1.0}, {0.5}, {0.5}));
  EXPECT_EQ(all.outcome, Outcome::fail);
  EXPECT_EQ(all.compared, 4);

  Verdict none = judge({1.0F}, {1.0}, {infinity}, {infinity});
  none.merge(judge({1.0F}, {1.0}, {infinity}, {infinity}));
  EXPECT_EQ(none.outcome, Outcome::vacuous);
}

TEST(Verdict, MergePointsAtWhatWasJudged) {
  const Verdict judged = judge({1.25F}, {1.0}, {0.5}, {0.5}),
                unjudged = judge({7.0F}, {1.0}, {infinity}, {infinity});
  Verdict last = unjudged, first = judged;
  last.merge(judged);
  first.merge(unjudged);
  for (const Verdict& all : {first, last}) {
    EXPECT_EQ(all.worst.actual, 1.25);
    EXPECT_EQ(all.worst_ratio, 0.5);
    EXPECT_EQ(all.outcome, Outcome::pass);
    EXPECT_EQ(all.unjudged, std::vector<std::string>{"y"});
  }
}

TEST(Verdict, EmptyTensorPasses) {
  const Verdict verdict = judge_tensor({"y", {1, 0, 1, 3}, {}, {}, {}, {}});
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.compared, 0);
}

}  // namespace
}  // namespace gaugeblock
