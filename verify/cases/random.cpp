#include "gaugeblock/verify/cases/random.h"

#include <bit>

namespace gaugeblock {

Bits philox(Bits counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53U;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57U;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9U;  // golden ratio
  constexpr std::uint32_t weyl_1 = 0xBB67AE85U;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  return hash;
}

Stream::Stream(std::uint64_t seed, std::string_view purpose) {
  const std::uint64_t key = scramble(scramble(seed) ^ fnv1a(purpose));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

Bits Stream::at(Index a, Index b, Index c, Index d) const {
  return philox({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
                 static_cast<std::uint32_t>(d)},
                key_);
}

std::uint32_t below(std::uint32_t random, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(random) * n) >> 32);
}

float unit_uniform(std::uint32_t random) {
  return static_cast<float>(random >> 8) * 0x1p-24F;
}

float signed_uniform(std::uint32_t random) {
  return static_cast<float>(static_cast<std::int32_t>(random >> 8) - (1 << 23)) * 0x1p-23F;
}

float normal(const Bits& random) {
  // The sum of three 22-bit integers, centred and doubled, is below 2^24 in magnitude: exact as a float. Its
  // standard deviation is 2^22: three times 2^44 / 12, doubled.
  const std::int32_t sum =
      static_cast<std::int32_t>((random[0] >> 10) + (random[1] >> 10) + (random[2] >> 10));
  constexpr std::int32_t twice_mean = 3 * ((1 << 22) - 1);
  return static_cast<float>(2 * sum - twice_mean) * 0x1p-22F;
}

float normal_or_signed_zero(const Bits& random) {
  switch (random[3] >> 30) {
    case 0:
      return 0.0F;
    case 1:
      return -0.0F;
    default:
      return normal(random);
  }
}

float small_integer(std::uint32_t random, std::uint32_t largest) {
  return static_cast<float>(static_cast<std::int32_t>(below(random, 2 * largest + 1)) -
                            static_cast<std::int32_t>(largest));
}

float log_uniform(const Bits& random, int low, int high) {
  const std::uint32_t octave = below(random[0], static_cast<std::uint32_t>(high - low));
  const std::uint32_t biased_exponent = static_cast<std::uint32_t>(low + 127) + octave;
  return std::bit_cast<float>((biased_exponent << 23) | (random[1] >> 9));
}

float subnormal(std::uint32_t random) {
  return std::bit_cast<float>((random >> 9) | 1U);
}

float scaled(float x, int exponent) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) == 0) return x;
  return std::bit_cast<float>(bits + (static_cast<std::uint32_t>(exponent) << 23));
}

Draw::Draw(std::uint64_t seed, std::uint64_t index)
    : stream_(seed, "draw"),
      index_low_(static_cast<Index>(index & 0xFFFFFFFFU)),
      index_high_(static_cast<Index>(index >> 32)) {}

std::uint32_t Draw::bits() {
  const Index place = next_++;
  return stream_.at(index_low_, index_high_, place / 4)[static_cast<std::size_t>(place % 4)];
}

Index Draw::between(Index low, Index high) {
  return low + static_cast<Index>(below(bits(), static_cast<std::uint32_t>(high - low + 1)));
}

}  // namespace gaugeblock
