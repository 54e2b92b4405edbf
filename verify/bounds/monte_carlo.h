// Monte Carlo arithmetic: float32 numbers whose every operation rounds at random.
//
// A `MonteCarlo` holds `lanes` independent runs of the same computation. The exact result x of an operation
// is rounded to one of its two float32 neighbours, each with the probability that makes the mean equal to x
// (Parker, "Monte Carlo arithmetic", 1997). Exact results stay exact, but for quotients. Which neighbour it is
// depends on x and the lane alone: like a computer, a lane computes the same from the same, so that the errors
// of repeated inputs line up. The spread over the lanes shows how the rounding errors of a formula add up on
// the very inputs at hand.
#pragma once

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {

class MonteCarlo {
 public:
  static constexpr int lanes = 8;

  MonteCarlo() : value{} {}
  /// Exact for float and small integers; anything wider is rounded to the nearest float32.
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  MonteCarlo(Number number) {  // NOLINT(google-explicit-constructor): a number is a Monte Carlo number
    value.fill(static_cast<float>(number));
  }

  std::array<float, lanes> value;

  /// Seeds this thread's roundings.
  static void seed(std::uint64_t seed) {
    for (int lane = 0; lane < lanes; ++lane)
      keys()[lane] = scramble(seed + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(lane + 1));
  }

  /// Largest relative error of exp in this thread, in units of u = 2^-24; at least 1, the rounding itself.
  static double& exp_error() {
    thread_local double error = 1;
    return error;
  }

  /// Largest relative error of a product in this thread, in units of u; at least 1, the rounding itself.
  static double& product_error() {
    thread_local double error = 1;
    return error;
  }

  friend MonteCarlo operator+(const MonteCarlo& a, const MonteCarlo& b) {
    return rounded(a.wide() + b.wide());
  }
  friend MonteCarlo operator-(const MonteCarlo& a, const MonteCarlo& b) {
    return rounded(a.wide() - b.wide());
  }
  friend MonteCarlo operator*(const MonteCarlo& a, const MonteCarlo& b) {
    Wide product = a.wide() * b.wide();
    if (product_error() > 1)
      product *= 1 + (product_error() - 1) * std::ldexp(1.0, -24) * random_unit(product);
    return rounded(product);
  }
  /// With one rounding more, of up to u either way, that is there also when all is exact. Every quotient of
  /// the forms is one of a sum (a mean, a variance, a softmax), and where this order of the sum was exact by
  /// luck, another one is not.
  friend MonteCarlo operator/(const MonteCarlo& a, const MonteCarlo& b) {
    const Wide quotient = a.wide() / b.wide();
    return rounded(quotient * (1 + std::ldexp(1.0, -24) * random_unit(quotient)));
  }
  /// In every lane; Eigen's vector products ask for it.
  friend bool operator==(const MonteCarlo& a, const MonteCarlo& b) { return a.value == b.value; }
  MonteCarlo operator-() const {
    MonteCarlo result;
    for (int lane = 0; lane < lanes; ++lane) result.value[lane] = -value[lane];
    return result;
  }
  MonteCarlo& operator+=(const MonteCarlo& other) { return *this = *this + other; }
  MonteCarlo& operator-=(const MonteCarlo& other) { return *this = *this - other; }
  MonteCarlo& operator*=(const MonteCarlo& other) { return *this = *this * other; }
  MonteCarlo& operator/=(const MonteCarlo& other) { return *this = *this / other; }

  friend MonteCarlo sqrt(const MonteCarlo& a) {
    Wide root;
    for (int lane = 0; lane < lanes; ++lane) root[lane] = std::sqrt(double(a.value[lane]));
    return rounded(root);
  }
  /// e^a with a relative error drawn uniformly within exp_error() · u.
  friend MonteCarlo exp(const MonteCarlo& a) {
    const double spread = (exp_error() - 1) * std::ldexp(1.0, -24);
    const Wide unit = random_unit(a.wide());
    Wide power;
    for (int lane = 0; lane < lanes; ++lane)
      power[lane] = std::exp(double(a.value[lane])) * (1 + spread * unit[lane]);
    return rounded(power);
  }
  /// Lane by lane; a NaN on either side stays NaN.
  friend MonteCarlo max(const MonteCarlo& a, const MonteCarlo& b) {
    MonteCarlo result;
    for (int lane = 0; lane < lanes; ++lane)
      result.value[lane] =
          (a.value[lane] > b.value[lane] || std::isnan(a.value[lane])) ? a.value[lane] : b.value[lane];
    return result;
  }

 private:
  // Vectors of the compiler's, so that all lanes go through the same few instructions on any processor.
  using Wide = double __attribute__((vector_size(8 * lanes)));
  using Narrow = float __attribute__((vector_size(4 * lanes)));
  using Bits = std::uint64_t __attribute__((vector_size(8 * lanes)));

  Wide wide() const {
    Narrow narrow;
    std::memcpy(&narrow, value.data(), sizeof narrow);
    return __builtin_convertvector(narrow, Wide);
  }

  static std::array<std::uint64_t, lanes>& keys() {
    thread_local std::array<std::uint64_t, lanes> keys{1, 2, 3, 4, 5, 6, 7, 8};
    return keys;
  }
  /// Random bits for x, lane by lane; `salt` makes others. Two rounds of multiplying and folding mix all bits.
  static Bits random_bits(Wide x, std::uint64_t salt = 0) {
    constexpr std::uint64_t odd = 0xd6e8feb86659fd93U;
    Bits key;
    std::memcpy(&key, keys().data(), sizeof key);
    Bits bits = std::bit_cast<Bits>(x) ^ (key + salt);
    bits ^= bits >> 32;
    bits *= odd;
    bits ^= bits >> 32;
    bits *= odd;
    return bits ^ (bits >> 32);
  }

  /// Uniform in [-1, 1), lane by lane: for errors beside the rounding of x.
  static Wide random_unit(Wide x) {
    return __builtin_convertvector(random_bits(x, 0x9e3779b97f4a7c15U) >> 11, Wide) * std::ldexp(1.0, -52) -
           1;
  }

  /// Rounds at random: a random number below one float32 ulp is added to the bits of |x|, then the bits that
  /// float32 does not have are cut off. Sums and products of two floats fit a double well enough (a sum may
  /// lose bits below 2^-52 of it), so x counts as exact.
  static MonteCarlo rounded(Wide exact) {
    constexpr std::uint64_t below_ulp = (1U << 29) - 1;  // 53 - 24 bits
    constexpr std::uint64_t magnitude = ~(std::uint64_t{1} << 63);
    constexpr auto smallest_normal = std::bit_cast<std::uint64_t>(double{std::numeric_limits<float>::min()});
    const Bits random = random_bits(exact);
    const Bits bits = std::bit_cast<Bits>(exact);
    const Narrow narrow =
        __builtin_convertvector(std::bit_cast<Wide>((bits + (random >> 35)) & ~below_ulp), Narrow);
    MonteCarlo result;
    std::memcpy(result.value.data(), &narrow, sizeof narrow);
    // The sign bit is set where |x| is below the normal range but not 0, which needs no rounding.
    const Bits below = ((bits & magnitude) - smallest_normal) & ~((bits & magnitude) - 1);
    std::uint64_t any = 0;
    for (int lane = 0; lane < lanes; ++lane) any |= below[lane];
    if ((any >> 63) != 0) [[unlikely]]
      round_small(exact, random, result);
    return result;
  }

  /// The same for results below 2^-126, whose ulp is 2^-149 whatever their exponent.
  static void round_small(Wide wide, Bits random, MonteCarlo& result) {
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(std::abs(wide[lane]) < std::numeric_limits<float>::min()) || wide[lane] == 0) continue;
      const double ulps = std::ldexp(std::abs(wide[lane]), 149);
      const double unit = double(random[lane] >> 11) * std::ldexp(1.0, -53);  // in [0, 1)
      result.value[lane] =
          static_cast<float>(std::copysign(std::ldexp(std::floor(ulps + unit), -149), wide[lane]));
    }
  }
};

}  // namespace gaugeblock

namespace Eigen {
template <>
struct NumTraits<gaugeblock::MonteCarlo> : NumTraits<float> {
  using Real = gaugeblock::MonteCarlo;
  using NonInteger = gaugeblock::MonteCarlo;
  using Nested = gaugeblock::MonteCarlo;
  using Literal = gaugeblock::MonteCarlo;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 8,
    AddCost = 30,
    MulCost = 30
  };
};
}  // namespace Eigen
