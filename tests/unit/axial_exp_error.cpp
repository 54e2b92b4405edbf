// How exact the C library's expf is where softmax uses it: between the logits that matter and 0.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "gaugeblock/verify/variants/axial_cpu.h"

namespace gaugeblock {
namespace {

struct Worst {
  double normal = 0;     ///< largest |expf(x) - e^x| / e^x over results of at least 2^-126, in units of 2^-24
  double subnormal = 0;  ///< largest |expf(x) - e^x| below, in units of 2^-149
};

/// Every `step`-th float of [-104, -2^-31]; closer to 0 expf gives 1 or the float below, which is within 1 u.
Worst measure(std::uint32_t step) {
  Worst worst;
  const auto first = std::bit_cast<std::uint32_t>(-0x1p-31F);
  const auto last = std::bit_cast<std::uint32_t>(-104.0F);
  for (std::uint32_t bits = first; bits <= last; bits += step) {
    const auto x = std::bit_cast<float>(bits);
    const double exact = std::exp(static_cast<double>(x));  // wrong by 2^-29 u at most
    const double error = std::abs(static_cast<double>(std::exp(x)) - exact);
    if (exact >= 0x1p-126)
      worst.normal = std::max(worst.normal, error / (exact * 0x1p-24));
    else
      worst.subnormal = std::max(worst.subnormal, error / 0x1p-149);
  }
  return worst;
}

void expect_within_the_model(const Worst& worst) {
  const double model = axial_cpu_variants().front().arithmetic.exp_error;
  std::printf("expf: %.6f u, below 2^-126 %.6f of the smallest subnormal; the model says %.2f u\n",
              worst.normal, worst.subnormal, model);
  EXPECT_GT(worst.normal, 0.9);  // a measurement that finds less than rounding alone measures nothing
  EXPECT_LE(worst.normal, model);
  EXPECT_LE(worst.subnormal, 0x1p23);  // the bounds allow 2^-126
}

// A prime step meets every exponent and all kinds of last bits.
TEST(AxialExpError, SampledFloatsStayWithinTheModel) {
  expect_within_the_model(measure(101));
}

// All 310 million of them; about 6 s. Run with --gtest_also_run_disabled_tests.
TEST(AxialExpError, DISABLED_EveryFloatStaysWithinTheModel) {
  expect_within_the_model(measure(1));
}

TEST(AxialExpError, ZeroIsExact) {
  EXPECT_EQ(std::exp(0.0F), 1.0F);
}

}  // namespace
}  // namespace gaugeblock
