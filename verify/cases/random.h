// Random numbers that are the same bits on every platform.
//
// Everything is a pure function of integers (Philox4x32-10: a counter, a key, no state), and every float is
// built from integers without rounding: no std:: distribution, no mathematical function, no order of calls
// that could matter.
//
// Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// 128 random bits.
using Bits = std::array<std::uint32_t, 4>;

/// Philox4x32-10: a bijection of the counter for every key.
Bits philox(Bits counter, std::array<std::uint32_t, 2> key);

/// One bijective scrambling of 64 bits (the finaliser of splitmix64), to make keys of seeds.
std::uint64_t scramble(std::uint64_t x);

/// FNV-1a of bytes.
std::uint64_t fnv1a(std::string_view bytes);

/// Random bits by place: what stands at (a,b,c,d) depends on the seed, the purpose and that place alone, so a
/// tensor keeps its values when its extents, its layout or another tensor changes.
class Stream {
 public:
  /// `purpose`: the name of the tensor, or of the choice, that the bits are for.
  Stream(std::uint64_t seed, std::string_view purpose);

  /// Bits at a place; subscripts are below 2^32.
  Bits at(Index a, Index b = 0, Index c = 0, Index d = 0) const;

 private:
  std::array<std::uint32_t, 2> key_;
};

/// Integer in [0, n) from 32 random bits; n >= 1. Without bias worth the name for the small n used here.
std::uint32_t below(std::uint32_t random, std::uint32_t n);

/// Multiple of 2^-24 in [0,1).
float unit_uniform(std::uint32_t random);

/// Multiple of 2^-23 in [-1,1).
float signed_uniform(std::uint32_t random);

/// A bell-shaped value with mean 0 and variance 1: twice the centred sum of three uniform integers, which
/// stays within (-3,3) and is never 0. An odd multiple of 2^-22. Uses the first three words.
float normal(const Bits& random);

/// ±0 with probability 1/4 each, otherwise normal(). Decides by the fourth word.
float normal_or_signed_zero(const Bits& random);

/// Integer in [-largest, largest].
float small_integer(std::uint32_t random, std::uint32_t largest);

/// Positive, log-uniform by octaves over [2^low, 2^high): an exponent and 23 mantissa bits, both uniform.
/// -126 <= low < high <= 128. Uses the first two words.
float log_uniform(const Bits& random, int low, int high);

/// Positive subnormal: 23 uniform mantissa bits, the lowest of which is set.
float subnormal(std::uint32_t random);

/// x · 2^exponent, exact. x is 0 or normal; precondition: so is the result.
float scaled(float x, int exponent);

/// A sequence of choices: the source that arbitrary cases are drawn from.
class Draw {
 public:
  explicit Draw(std::uint64_t seed, std::uint64_t index = 0);

  std::uint32_t bits();

  /// Integer in [low, high], both included; high - low < 2^32 - 1.
  Index between(Index low, Index high);

  /// True once in `n` times on average.
  bool one_in(std::uint32_t n) { return below(bits(), n) == 0; }

  template <class T>
  T pick(const std::vector<T>& choices) {
    return choices.at(below(bits(), static_cast<std::uint32_t>(choices.size())));
  }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return pick(std::vector<T>(choices));
  }

 private:
  Stream stream_;
  Index index_low_;
  Index index_high_;
  Index next_ = 0;
};

}  // namespace gaugeblock
