// Monte Carlo arithmetic: float32 numbers whose every operation rounds at random.
//
// A `MonteCarlo` holds `lanes` independent runs of the same computation. The exact result x of an operation is
// rounded to one of its two float32 neighbours, each with the probability that makes the mean equal to x
// (Parker, "Monte Carlo arithmetic", 1997). Exact results stay exact. The spread over the lanes shows how the
// rounding errors of a formula add up on the very inputs at hand.
#pragma once

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

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

  /// Seeds this thread's random roundings.
  static void seed(std::uint64_t seed) {
    for (int lane = 0; lane < lanes; ++lane) {  // splitmix64: distinct, well-mixed, never zero in practice
      std::uint64_t z = seed + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(lane + 1);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
      random_state()[lane] = (z ^ (z >> 31)) | 1U;
    }
  }

  /// Largest relative error of exp in this thread, in units of u = 2^-24; at least 1, the rounding itself.
  static double& exp_error() {
    thread_local double error = 1;
    return error;
  }

  friend MonteCarlo operator+(const MonteCarlo& a, const MonteCarlo& b) {
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) wide[lane] = double(a.value[lane]) + double(b.value[lane]);
    return rounded(wide);
  }
  friend MonteCarlo operator-(const MonteCarlo& a, const MonteCarlo& b) {
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) wide[lane] = double(a.value[lane]) - double(b.value[lane]);
    return rounded(wide);
  }
  friend MonteCarlo operator*(const MonteCarlo& a, const MonteCarlo& b) {
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) wide[lane] = double(a.value[lane]) * double(b.value[lane]);
    return rounded(wide);
  }
  friend MonteCarlo operator/(const MonteCarlo& a, const MonteCarlo& b) {
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) wide[lane] = double(a.value[lane]) / double(b.value[lane]);
    return rounded(wide);
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
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) wide[lane] = std::sqrt(double(a.value[lane]));
    return rounded(wide);
  }
  /// e^a with a relative error drawn uniformly within exp_error() · u.
  friend MonteCarlo exp(const MonteCarlo& a) {
    const double spread = (exp_error() - 1) * std::ldexp(1.0, -24);
    Wide wide;
    for (int lane = 0; lane < lanes; ++lane) {
      const double unit = double(next_random()[lane] >> 11) * std::ldexp(1.0, -52) - 1;  // in [-1, 1)
      wide[lane] = std::exp(double(a.value[lane])) * (1 + spread * unit);
    }
    return rounded(wide);
  }
  /// Lane by lane; a NaN on either side stays NaN.
  friend MonteCarlo max(const MonteCarlo& a, const MonteCarlo& b) {
    MonteCarlo result;
    for (int lane = 0; lane < lanes; ++lane)
      result.value[lane] = (a.value[lane] > b.value[lane] || std::isnan(a.value[lane])) ? a.value[lane] : b.value[lane];
    return result;
  }

 private:
  using Wide = std::array<double, lanes>;
  using Random = std::array<std::uint64_t, lanes>;

  static Random& random_state() {
    thread_local Random state{1, 2, 3, 4, 5, 6, 7, 8};
    return state;
  }
  /// One xorshift64 step of every lane (Marsaglia, "Xorshift RNGs", 2003).
  static const Random& next_random() {
    Random& state = random_state();
    for (int lane = 0; lane < lanes; ++lane) {
      std::uint64_t x = state[lane];
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      state[lane] = x;
    }
    return state;
  }

  /// Rounds at random: a random number below one float32 ulp is added to the bits of |x|, then the bits that
  /// float32 does not have are cut off. Sums and products of two floats fit a double well enough (a sum may lose
  /// bits below 2^-52 of it), so x counts as exact.
  static MonteCarlo rounded(const Wide& wide) {
    constexpr std::uint64_t below_ulp = (1U << 29) - 1;  // 53 - 24 bits
    const Random& random = next_random();
    MonteCarlo result;
    bool small = false;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(wide[lane]) + (random[lane] >> 35);
      result.value[lane] = static_cast<float>(std::bit_cast<double>(bits & ~below_ulp));
      small |= !(std::abs(wide[lane]) >= std::numeric_limits<float>::min());
    }
    if (small) [[unlikely]]
      round_small(wide, random, result);
    return result;
  }

  /// The same for results below 2^-126, whose ulp is 2^-149 whatever their exponent.
  static void round_small(const Wide& wide, const Random& random, MonteCarlo& result) {
    for (int lane = 0; lane < lanes; ++lane) {
      if (wide[lane] == 0) result.value[lane] = static_cast<float>(wide[lane]);
      if (!(std::abs(wide[lane]) < std::numeric_limits<float>::min()) || wide[lane] == 0) continue;
      const double ulps = std::ldexp(std::abs(wide[lane]), 149);
      const double unit = double(random[lane] >> 11) * std::ldexp(1.0, -53);  // in [0, 1)
      result.value[lane] = static_cast<float>(std::copysign(std::ldexp(std::floor(ulps + unit), -149), wide[lane]));
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
