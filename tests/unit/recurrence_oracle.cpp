// The oracle: its truth against a second one, its bounds by hand where they can be done by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "gaugeblock/verify/bounds/claims.h"
#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/cases/case.h"

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double u = claims::unit_roundoff;

TEST(RecurrenceOracle, LongDoubleTruthLiesWithinItsShareOfTheBound) {
  for (const char* text :
       {"recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=unit,qkv=normal,seed=42",
        "recurrence:B=1,T=200,H=2,K=33,V=7,gate=negative,beta=normal,qkv=normal,state=writes,seed=3"}) {
    const Problem problem = make_problem(parse_case(text));
    const auto automatic = make_oracle(problem);
    const auto precise = make_oracle(problem, Truth::high_precision);
    const Arithmetic any{.form = "any_form"};
    for (const char* output : {"y", "final_state"}) {
      const auto& bound = precise->proved(output, any);
      for (std::size_t e = 0; e < bound.size(); ++e)
        ASSERT_LE(std::abs(automatic->expected(output)[e] - precise->expected(output)[e]),
                  0x1p-26 * bound[e]);
    }
  }
}

TEST(RecurrenceOracle, OneStepByHand) {
  // T = 1, K = V = 1, no state: y = q·(beta·k·v), three products, each rounded once.
  Problem problem =
      make_problem(parse_case("recurrence:B=1,T=1,H=1,K=1,V=1,gate=one,beta=normal,qkv=normal,seed=9"));
  const auto oracle = make_oracle(problem);
  const double exact = double(problem.input("q").values()[0]) *
                       (double(problem.input("beta").values()[0]) * double(problem.input("k").values()[0])) *
                       double(problem.input("v").values()[0]);
  EXPECT_NEAR(oracle->expected("y")[0], exact, std::abs(exact) * 0x1p-52);
  // sequential: at least the three roundings that happen, at most the D + 3 = 4 of the count (and a trace of
  // slack)
  const double bound = oracle->proved("y", {.form = "sequential"})[0];
  EXPECT_GE(bound, 3 * u * std::abs(exact));
  EXPECT_LE(bound, 4 * u * std::abs(exact) * 1.001);
  // closed form: 3t + D + 3 = 7
  EXPECT_NEAR(oracle->proved("y", {.form = "prefix_product"})[0], 7 * u * std::abs(exact),
              0.01 * u * std::abs(exact));
}

TEST(RecurrenceOracle, BoundsGrowWithWhatIsAllowed) {
  const Problem problem = make_problem(parse_case(
      "recurrence:B=1,T=50,H=1,K=8,V=4,gate=near_one,beta=uniform,qkv=normal,state=writes,seed=2"));
  const auto oracle = make_oracle(problem);
  const Arithmetic sequential{.form = "sequential"};
  Arithmetic flushed = sequential;
  flushed.flush_to_zero = true;
  const Arithmetic any{.form = "any_form"};
  for (const char* output : {"y", "final_state"})
    for (std::size_t e = 0; e < oracle->expected(output).size(); ++e) {
      EXPECT_LE(oracle->proved(output, sequential)[e], oracle->proved(output, any)[e]);
      EXPECT_LE(oracle->proved(output, sequential)[e], oracle->proved(output, flushed)[e]);
      EXPECT_LE(oracle->likely(output, sequential)[e], oracle->likely(output, any)[e]);
    }
}

TEST(RecurrenceOracle, TheSequentialBoundIsTheSmallerOfTwoClaims) {
  // The running bound follows the values, so it is the smaller one where terms cancel.
  const Arithmetic sequential{.form = "sequential"};
  std::set<std::string> seen;
  for (const char* text :
       {"recurrence:B=1,T=60,H=1,K=4,V=3,gate=near_one,beta=unit,qkv=normal,state=writes,seed=5",
        "recurrence:B=1,T=1,H=1,K=1,V=1,gate=one,beta=unit,qkv=normal,state=none,seed=2"}) {
    const Problem problem = make_problem(parse_case(text));
    const auto oracle = make_oracle(problem);
    for (const char* output : {"y", "final_state"}) {
      const std::string counted =
          std::string("recurrence.sequential.") + (output == std::string("y") ? "output" : "state");
      const auto& both = oracle->proved(output, sequential);
      const auto by_count = oracle->proved_by(counted, output, sequential);
      const auto running = oracle->proved_by("recurrence.sequential.running", output, sequential);
      for (std::size_t e = 0; e < both.size(); ++e) {
        EXPECT_EQ(both[e], std::min(by_count[e], running[e]));
        const std::string claim = oracle->claim(output, sequential, static_cast<Index>(e));
        EXPECT_EQ(both[e], claim == counted ? by_count[e] : running[e]) << claim;
        seen.insert(claim);
      }
    }
    EXPECT_THROW(oracle->proved_by("recurrence.scan.output", "y", sequential), std::logic_error);
  }
  EXPECT_TRUE(seen.contains("recurrence.sequential.running"));
}

TEST(RecurrenceOracle, NothingIsBoundWhereFloatMayOverflow) {
  Problem problem =
      make_problem(parse_case("recurrence:B=1,T=2,H=1,K=1,V=1,gate=one,beta=unit,qkv=normal,seed=1"));
  problem.inputs["k"].assign({1e30F, 1.0F});
  problem.inputs["v"].assign({1e30F, 1.0F});
  problem.inputs["q"].assign({1e-30F, 1.0F});  // y_0 = 1e30 is in range, its state 1e60 is not
  const auto oracle = make_oracle(problem);
  EXPECT_EQ(oracle->proved("y", {.form = "sequential"})[0], infinity);
  EXPECT_EQ(oracle->proved("y", {.form = "any_form"})[1], infinity);
}

TEST(RecurrenceOracle, TheClosedFormHasNoBoundOutsideItsRange) {
  const Problem problem = make_problem(
      parse_case("recurrence:B=1,T=130,H=1,K=1,V=1,gate=const:0.5,beta=unit,qkv=normal,state=none,seed=1"));
  const auto oracle = make_oracle(problem);
  const auto& bound = oracle->proved("y", {.form = "prefix_product"});
  EXPECT_LT(bound[110], infinity);
  EXPECT_EQ(bound[126], infinity);
  EXPECT_LT(oracle->proved("y", {.form = "prefix_product_segmented"})[126], infinity);
}

TEST(RecurrenceOracle, WithoutStepsTheStateIsExact) {
  const Problem problem = make_problem(
      parse_case("recurrence:B=1,T=0,H=1,K=3,V=2,gate=one,beta=unit,qkv=normal,state=writes,seed=1"));
  const auto oracle = make_oracle(problem);
  EXPECT_TRUE(oracle->expected("y").empty());
  for (const double bound : oracle->proved("final_state", {.form = "any_form"})) EXPECT_EQ(bound, 0);
}

TEST(Claims, CeilLog2) {
  EXPECT_EQ(claims::ceil_log2(1), 0);
  EXPECT_EQ(claims::ceil_log2(2), 1);
  EXPECT_EQ(claims::ceil_log2(3), 2);
  EXPECT_EQ(claims::ceil_log2(4), 2);
  EXPECT_EQ(claims::ceil_log2(5), 3);
  EXPECT_EQ(claims::ceil_log2(1024), 10);
  EXPECT_EQ(claims::ceil_log2(1025), 11);
}

}  // namespace
}  // namespace gaugeblock
