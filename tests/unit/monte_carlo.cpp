// Monte Carlo arithmetic rounds to the two neighbours, with the right mean, and leaves exact results alone.
#include "gaugeblock/verify/bounds/monte_carlo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/bounds/likely.h"

namespace gaugeblock {
namespace {

constexpr int repeats = 20000;

/// Mean over many roundings of an operation, in the wide type.
template <class Operation>
double mean_of(Operation operation) {
  double sum = 0;
  for (int i = 0; i < repeats; ++i) {
    MonteCarlo::seed(i);
    for (const float lane : operation().value) sum += double(lane);
  }
  return sum / (double(repeats) * MonteCarlo::lanes);
}

TEST(MonteCarlo, RoundsToANeighbourWithTheRightMean) {
  const double exact = double(1.1F) * double(1.3F);
  for (int i = 0; i < repeats; ++i) {
    MonteCarlo::seed(i);
    for (const float lane : (MonteCarlo(1.1F) * MonteCarlo(1.3F)).value) {
      const float near = static_cast<float>(exact);
      const float other = std::nextafter(near, double(near) < exact ? 2.0F : 1.0F);
      EXPECT_TRUE(lane == near || lane == other);
    }
  }
  // The mean of n roundings within one ulp (2^-23) strays by about ulp/2/√n.
  EXPECT_NEAR(mean_of([] { return MonteCarlo(1.1F) * MonteCarlo(1.3F); }), exact,
              0x1p-23 / std::sqrt(repeats));
  EXPECT_NEAR(mean_of([] { return MonteCarlo(-1.1F) * MonteCarlo(1.3F); }), -exact,
              0x1p-23 / std::sqrt(repeats));
  EXPECT_NEAR(mean_of([] { return MonteCarlo(1.0F) + MonteCarlo(0x1p-26F); }), 1 + 0x1p-26,
              0x1p-23 / std::sqrt(repeats));
}

TEST(MonteCarlo, ExactResultsStayExact) {
  MonteCarlo::seed(2);
  for (int i = 0; i < 100; ++i) {
    for (const float lane : (MonteCarlo(3.0F) * MonteCarlo(5.0F) + MonteCarlo(0.25F)).value)
      EXPECT_EQ(lane, 15.25F);
    for (const float lane : (MonteCarlo(0.0F) * MonteCarlo(5.0F)).value) EXPECT_EQ(lane, 0.0F);
    for (const float lane : (MonteCarlo(2.0F) - MonteCarlo(2.0F)).value) EXPECT_EQ(lane, 0.0F);
    for (const float lane : (MonteCarlo(0x1p-140F) * MonteCarlo(2.0F)).value) EXPECT_EQ(lane, 0x1p-139F);
    for (const float lane : sqrt(MonteCarlo(9.0F)).value) EXPECT_EQ(lane, 3.0F);
  }
}

TEST(MonteCarlo, AQuotientHasTheRoundingOfASumInAnotherOrder) {
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    MonteCarlo::seed(i);
    for (const float lane : (MonteCarlo(6.0F) / MonteCarlo(3.0F)).value) {
      EXPECT_NEAR(lane, 2.0F, 0x1p-22);
      differs = differs || lane != 2.0F;
    }
  }
  EXPECT_TRUE(differs);
  EXPECT_NEAR(mean_of([] { return MonteCarlo(6.0F) / MonteCarlo(3.0F); }), 2, 0x1p-22 / std::sqrt(repeats));
  for (const float lane : (MonteCarlo(0.0F) / MonteCarlo(3.0F)).value) EXPECT_EQ(lane, 0.0F);
}

TEST(MonteCarlo, SubnormalResultsRoundAtRandomToo) {
  // 1.5 · 2^-149 lies half way between two subnormal numbers.
  EXPECT_NEAR(mean_of([] { return MonteCarlo(0x1.8p-100F) * MonteCarlo(0x1p-49F); }) / 0x1p-149, 1.5,
              2 / std::sqrt(repeats));
}

TEST(MonteCarlo, NonFiniteStaysNonFinite) {
  for (const float lane : (MonteCarlo(3e38F) * MonteCarlo(10.0F)).value) EXPECT_TRUE(std::isinf(lane));
  for (const float lane : (MonteCarlo(std::nanf("")) + MonteCarlo(1.0F)).value) EXPECT_TRUE(std::isnan(lane));
  for (const float lane : max(MonteCarlo(std::nanf("")), MonteCarlo(1.0F)).value)
    EXPECT_TRUE(std::isnan(lane));
  for (const float lane : max(MonteCarlo(1.0F), MonteCarlo(std::nanf(""))).value)
    EXPECT_TRUE(std::isnan(lane));
}

TEST(MonteCarlo, SameSeedSameRoundings) {
  MonteCarlo::seed(4);
  const MonteCarlo a = MonteCarlo(1.0F) / MonteCarlo(3.0F);
  MonteCarlo::seed(4);
  EXPECT_TRUE(a == MonteCarlo(1.0F) / MonteCarlo(3.0F));
}

TEST(MonteCarlo, TheSameComputationGivesTheSame) {
  MonteCarlo::seed(6);
  const MonteCarlo a(1.1F);
  const MonteCarlo b(1.3F);
  EXPECT_TRUE(a * b == a * b);
  EXPECT_TRUE(a / b + a == a / b + a);
  bool differ = false;  // the lanes
  for (const float lane : (a * b).value) differ = differ || lane != (a * b).value[0];
  EXPECT_TRUE(differ);
}

TEST(FusedFloat, FusesAProductWithTheNextSum) {
  const FusedFloat a(1 + 0x1p-13F);
  const FusedFloat b(1 - 0x1p-13F);
  EXPECT_EQ((a * b).value, 1.0F);                           // rounded: the product is 1 - 2^-26
  EXPECT_EQ((a * b + FusedFloat(-1.0F)).value, -0x1p-26F);  // fused: nothing is lost
  EXPECT_EQ((FusedFloat(-1.0F) + a * b).value, -0x1p-26F);
  EXPECT_EQ((FusedFloat(1.0F) - a * b).value, 0x1p-26F);
}

TEST(Likely, HalfUlp) {
  EXPECT_EQ(half_ulp(1.0), 0x1p-24);
  EXPECT_EQ(half_ulp(-1.5), 0x1p-24);
  EXPECT_EQ(half_ulp(2.0), 0x1p-23);
  EXPECT_EQ(half_ulp(0.0), 0x1p-150);
  EXPECT_EQ(half_ulp(1e-42), 0x1p-150);
}

TEST(Likely, PoolsRowsByTheirScale) {
  // Two rows of two elements, ten times apart in scale and in error: their relative errors are the same.
  const Pooling pooling{2, 1, 1, 2, {1, 1, 10, 10}};
  const std::vector<double> pool = pooled({1, 3, 100, 300}, pooling);
  EXPECT_DOUBLE_EQ(pool[0], 0.5 * 1 + 0.5 * 2);
  EXPECT_DOUBLE_EQ(pool[3], 0.5 * 300 + 0.5 * 200);
}

TEST(Likely, TakesTheLargestErrorOfThePool) {
  const Pooling pooling{2, 1, 1, 2, {1, 1, 10, 10}};
  EXPECT_EQ(largest_in_pool({1, -3, 10, std::nan("")}, pooling), (std::vector<double>{3, 3, 30, 30}));
  EXPECT_EQ(largest_in_pool({1, -3, 10, 0}, Pooling{2, 1, 0, 2, {}}), (std::vector<double>{3, 3, 10, 10}));
}

TEST(Likely, WithoutAFiniteRunThereIsNoLimit) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> limit = likely_limit({1.0, 1e39}, {infinity, 0.0}, {}, Pooling{1, 1, 0, 2, {}});
  EXPECT_EQ(limit[0], infinity);
  EXPECT_EQ(limit[1], infinity);  // the true value leaves float32
}

}  // namespace
}  // namespace gaugeblock
