// float32 as a compiler contracts it: every a·b + c is one fused multiply-add.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <type_traits>

namespace gaugeblock {

/// A float that remembers the product it was made by, so that the next addition can fuse it.
class FusedFloat {
 public:
  FusedFloat() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  FusedFloat(Number number) : value(static_cast<float>(number)) {}  // NOLINT(google-explicit-constructor)

  float value = 0;

  friend FusedFloat operator*(FusedFloat a, FusedFloat b) {
    FusedFloat result(a.value * b.value);
    result.factor_a_ = a.value;
    result.factor_b_ = b.value;
    result.is_product_ = true;
    return result;
  }
  friend FusedFloat operator+(FusedFloat a, FusedFloat b) {
    if (b.is_product_) return {std::fma(b.factor_a_, b.factor_b_, a.value)};
    if (a.is_product_) return {std::fma(a.factor_a_, a.factor_b_, b.value)};
    return {a.value + b.value};
  }
  friend FusedFloat operator-(FusedFloat a, FusedFloat b) {
    if (b.is_product_) return {std::fma(-b.factor_a_, b.factor_b_, a.value)};
    if (a.is_product_) return {std::fma(a.factor_a_, a.factor_b_, -b.value)};
    return {a.value - b.value};
  }
  friend FusedFloat operator/(FusedFloat a, FusedFloat b) { return {a.value / b.value}; }
  /// Eigen's vector products ask for it.
  friend bool operator==(FusedFloat a, FusedFloat b) { return a.value == b.value; }
  FusedFloat operator-() const { return {-value}; }
  FusedFloat& operator+=(FusedFloat other) { return *this = *this + other; }
  FusedFloat& operator-=(FusedFloat other) { return *this = *this - other; }
  FusedFloat& operator*=(FusedFloat other) { return *this = *this * other; }
  FusedFloat& operator/=(FusedFloat other) { return *this = *this / other; }

  friend FusedFloat sqrt(FusedFloat a) { return {std::sqrt(a.value)}; }
  friend FusedFloat exp(FusedFloat a) { return {std::exp(a.value)}; }
  friend FusedFloat max(FusedFloat a, FusedFloat b) {
    return (a.value > b.value || std::isnan(a.value)) ? a : b;
  }

 private:
  float factor_a_ = 0;
  float factor_b_ = 0;
  bool is_product_ = false;
};

}  // namespace gaugeblock

namespace Eigen {
template <>
struct NumTraits<gaugeblock::FusedFloat> : NumTraits<float> {
  using Real = gaugeblock::FusedFloat;
  using NonInteger = gaugeblock::FusedFloat;
  using Nested = gaugeblock::FusedFloat;
  using Literal = gaugeblock::FusedFloat;
};
}  // namespace Eigen
