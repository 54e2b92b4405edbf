// The counter-based generator: known answers, and exactly the values that each distribution promises.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {
namespace {

constexpr Index samples = 20'000;

// Known answers that the authors of Philox publish with their library (Random123, kat_vectors, philox4x32
// 10).
TEST(CasesRandom, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Bits{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Bits{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
            (Bits{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

// The test vector of FNV-1a for "foobar", and the first output of splitmix64 from state 0.
TEST(CasesRandom, HashesGiveThePublishedAnswers) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(scramble(0), 0xe220a8397b1dcdafU);
}

TEST(CasesRandom, StreamsOfOneSeedDifferByPurposeAndPlace) {
  const Stream q(7, "q");
  EXPECT_EQ(q.at(1, 2, 3, 4), Stream(7, "q").at(1, 2, 3, 4));
  std::set<Bits> seen;
  for (const char* purpose : {"q", "k"})
    for (const std::uint64_t seed : {std::uint64_t{7}, std::uint64_t{8}, std::uint64_t{7} << 32})
      for (Index a = 0; a < 4; ++a)
        for (Index d = 0; d < 4; ++d) seen.insert(Stream(seed, purpose).at(a, 0, 0, d));
  EXPECT_EQ(seen.size(), 2U * 3U * 4U * 4U);
}

TEST(CasesRandom, ExtremeBitsGiveTheEndsOfEachRange) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(below(0, 10), 0U);
  EXPECT_EQ(below(most, 10), 9U);
  EXPECT_EQ(below(most, most), most - 1);
  EXPECT_EQ(unit_uniform(0), 0.0F);
  EXPECT_EQ(unit_uniform(most), 1.0F - 0x1p-24F);
  EXPECT_EQ(signed_uniform(0), -1.0F);
  EXPECT_EQ(signed_uniform(most), 1.0F - 0x1p-23F);
  EXPECT_EQ(normal({most, most, most, 0}), 3.0F * (1.0F - 0x1p-22F));
  EXPECT_EQ(normal({0, 0, 0, 0}), -3.0F * (1.0F - 0x1p-22F));
  EXPECT_EQ(small_integer(0, 3), -3.0F);
  EXPECT_EQ(small_integer(most, 3), 3.0F);
  EXPECT_EQ(log_uniform({0, 0, 0, 0}, -40, 4), 0x1p-40F);
  EXPECT_EQ(log_uniform({most, most, 0, 0}, -40, 4), 16.0F - 0x1p-20F);
  EXPECT_EQ(log_uniform({0, 0, 0, 0}, -126, 128), std::numeric_limits<float>::min());
  EXPECT_EQ(log_uniform({most, most, 0, 0}, -126, 128), std::numeric_limits<float>::max());
  EXPECT_EQ(subnormal(0), std::numeric_limits<float>::denorm_min());
  EXPECT_LT(subnormal(most), std::numeric_limits<float>::min());
}

TEST(CasesRandom, NormalHasMeanZeroAndVarianceOne) {
  const Stream stream(1, "normal");
  double sum = 0, squares = 0;
  for (Index i = 0; i < samples; ++i) {
    const float x = normal(stream.at(i));
    ASSERT_NE(x, 0.0F);
    ASSERT_LT(std::abs(x), 3.0F);
    ASSERT_EQ(std::fmod(x * 0x1p22F, 2.0F), x < 0 ? -1.0F : 1.0F) << "not an odd multiple of 2^-22";
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  // The mean of N values has a standard deviation of 1/sqrt(N) = 0.007; that of the squares is smaller.
  EXPECT_NEAR(sum / samples, 0, 0.04);
  EXPECT_NEAR(squares / samples, 1, 0.04);
}

TEST(CasesRandom, UniformFillsItsRangeEvenly) {
  const Stream stream(1, "uniform");
  std::array<int, 10> tenths{};
  for (Index i = 0; i < samples; ++i) {
    const float x = unit_uniform(stream.at(i)[0]);
    ASSERT_GE(x, 0.0F);
    ASSERT_LT(x, 1.0F);
    ++tenths.at(static_cast<std::size_t>(x * 10));
  }
  // Standard deviation of a count: sqrt(20000 · 0.09) = 42.
  for (const int count : tenths) EXPECT_NEAR(count, samples / 10, 250);
}

TEST(CasesRandom, SignedZerosComeInBothSignsAQuarterEach) {
  const Stream stream(1, "zeros");
  int positive = 0, negative = 0;
  for (Index i = 0; i < samples; ++i) {
    const float x = normal_or_signed_zero(stream.at(i));
    if (x == 0) ++(std::signbit(x) ? negative : positive);
  }
  EXPECT_NEAR(positive, samples / 4, 400);
  EXPECT_NEAR(negative, samples / 4, 400);
}

TEST(CasesRandom, ScalingIsExact) {
  EXPECT_EQ(scaled(1.5F, 3), 12.0F);
  EXPECT_EQ(scaled(-3.0F, -10), -3.0F / 1024);
  EXPECT_EQ(scaled(1.0F, -126), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::signbit(scaled(-0.0F, 50)));
  EXPECT_EQ(scaled(0.0F, 50), 0.0F);
}

TEST(CasesRandom, DrawsDependOnSeedAndIndexOnly) {
  Draw first(3, 5), again(3, 5), other_index(3, 6), other_seed(4, 5),
      high_index(3, 5 + (std::uint64_t{1} << 32));
  const std::uint32_t bits = first.bits();
  EXPECT_EQ(bits, again.bits());
  EXPECT_NE(bits, other_index.bits());
  EXPECT_NE(bits, other_seed.bits());
  EXPECT_NE(bits, high_index.bits());
  std::set<Index> seen;
  for (int i = 0; i < 200; ++i) seen.insert(first.between(-2, 2));
  EXPECT_EQ(seen, (std::set<Index>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(first.pick({7}), 7);
}

}  // namespace
}  // namespace gaugeblock
