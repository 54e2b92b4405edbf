// What split operands lose (claim axial.split_half), tried with a float16 of the CPU.
#include "gaugeblock/verify/bounds/split_operands.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <random>

namespace {

namespace claims = gaugeblock::claims;

float to_half(float x) {
  return static_cast<float>(Eigen::half(x));
}

/// The loss of a split in units of what the claim allows: at most 1.
double loss(float x, float (*round)(float)) {
  const float hi = round(x);
  const float lo = round(x - hi);
  const double allowed = claims::split_relative * std::abs(double(x)) + claims::split_absolute;
  return std::abs(double(x) - double(hi) - double(lo)) / allowed;
}

double worst_loss(float (*round)(float)) {
  std::mt19937 random(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const float significand = 1 + std::ldexp(static_cast<float>(random() >> 9), -23);
    const int exponent = static_cast<int>(random() % 46) - 30;  // 2^-30 … 2^15
    worst = std::fmax(worst, loss(std::ldexp(significand, exponent - 1), round));
  }
  return worst;
}

TEST(SplitOperands, LoseWhatTheClaimAllowsAndNotMuchLess) {
  const double worst = worst_loss(to_half);
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.9);
}

// Halves cut off instead of rounded lose more: the test above can fail.
TEST(SplitOperands, CutOffLoseMore) {
  EXPECT_GT(worst_loss([](float x) {
              const float half = to_half(x);
              return std::abs(half) > std::abs(x) ? to_half(half * (1 - 0x1p-11F)) : half;
            }),
            1.2);
}

// A product of three halves' products, against the constant for it.
TEST(SplitOperands, ProductsKeepTheirConstant) {
  std::mt19937 random(2);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const auto operand = [&] {
      return std::ldexp(1 + std::ldexp(static_cast<float>(random() >> 9), -23), 10);
    };
    const float x = operand(), y = operand();
    const double hx = to_half(x), lx = to_half(x - to_half(x)), hy = to_half(y), ly = to_half(y - to_half(y));
    const double exact = double(x) * double(y);
    worst = std::fmax(worst, std::abs(hx * hy + hx * ly + lx * hy - exact) / exact / claims::unit_roundoff);
  }
  EXPECT_LE(worst, claims::split_product_roundings);
  EXPECT_GT(worst, claims::split_product_roundings / 3);
}

}  // namespace
