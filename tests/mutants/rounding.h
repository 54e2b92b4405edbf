// Fewer bits than float32 has, for mutants and for the low-precision reference of other checkers.
#pragma once

#include <Eigen/Core>
#include <bit>
#include <cstdint>

namespace gaugeblock {

/// x rounded to `bits` significant bits, half away from zero: 11 are those of TF32 and float16, 8 those of
/// bfloat16.
inline float rounded(float x, int bits) {
  const int dropped = 24 - bits;
  const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
  const std::uint32_t mask = ~((std::uint32_t{1} << dropped) - 1);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + half) & mask);
}

template <class Derived>
typename Derived::PlainObject rounded(const Eigen::MatrixBase<Derived>& x, int bits) {
  return x.unaryExpr([bits](float value) { return rounded(value, bits); });
}

/// Each entry as float16 holds it: 11 bits, and infinite from 65520 on.
template <class Derived>
typename Derived::PlainObject in_half(const Eigen::MatrixBase<Derived>& x) {
  return x.template cast<Eigen::half>().template cast<float>();
}

}  // namespace gaugeblock
