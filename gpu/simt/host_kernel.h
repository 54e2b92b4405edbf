// What a kernel sees when a C++ compiler reads it: CUDA's names, on top of the interpreter. Included by
// simt.h only.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "gaugeblock/gpu/simt/engine.h"

namespace gaugeblock::simt {
inline namespace simt_backend {

/// Whether the interpreter runs what is compiled here.
inline constexpr bool interpreted = true;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

// --- accessors ---

/// An index that knows the source line it is written in.
struct Subscript {
  std::ptrdiff_t value;
  Site site;
  template <std::integral I>
  Subscript(I index, Site here = Site::current()) : value(static_cast<std::ptrdiff_t>(index)), site(here) {}
};

template <class T>
inline constexpr bool accessible = sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16;

struct GlobalBounds {
  Region* region;
  void check(const void* address, unsigned bytes, Access access, Site site) const {
    engine().access_global(address, bytes, access, region, site);
  }
};
struct SharedBounds {
  const unsigned char* begin;
  std::size_t bytes;
  void check(const void* address, unsigned size, Access access, Site site) const {
    engine().access_shared(address, size, access, begin, bytes, site);
  }
};

/// What &x[i] gives: an operand for the atomics, nothing else.
template <class T, class Bounds>
struct AtomicOperand {
  T* address;
  Bounds bounds;
};

/// What x[i] gives: reading converts, writing assigns; each is one access. Temporary: bind it to no `auto`.
template <class T, class Bounds>
class Reference {
 public:
  using Value = std::remove_const_t<T>;
  Reference(T* address, const Bounds& bounds, Site site) : address_(address), bounds_(bounds), site_(site) {}
  Reference(const Reference&) = delete;

  operator Value() && {
    bounds_.check(address_, sizeof(T), Access::load, site_);
    return *address_;
  }
  void operator=(Value value) && {
    static_assert(!std::is_const_v<T>, "a store through an accessor to const");
    bounds_.check(address_, sizeof(T), Access::store, site_);
    *address_ = value;
  }
  // A fault of either access throws.
  void operator=(Reference&& other) && {  // NOLINT(performance-noexcept-move-constructor)
    std::move(*this) = static_cast<Value>(std::move(other));
  }
  template <class U, class OtherBounds>
  void operator=(Reference<U, OtherBounds>&& other) && {
    std::move(*this) = static_cast<Value>(std::move(other));
  }
  void operator+=(Value value) && { update(load() + value); }
  void operator-=(Value value) && { update(load() - value); }
  void operator*=(Value value) && { update(load() * value); }
  AtomicOperand<T, Bounds> operator&() && { return {address_, bounds_}; }

 private:
  Value load() const {
    bounds_.check(address_, sizeof(T), Access::load, site_);
    return *address_;
  }
  void update(Value value) const {
    bounds_.check(address_, sizeof(T), Access::store, site_);
    *address_ = value;
  }
  T* address_;
  Bounds bounds_;
  Site site_;
};

template <class T, class Bounds>
class Accessor {
  static_assert(accessible<T>, "elements of 4, 8 or 16 bytes");

 public:
  Accessor(T* pointer, const Bounds& bounds) : pointer_(pointer), bounds_(bounds) {}

  Reference<T, Bounds> operator[](Subscript i) const { return {pointer_ + i.value, bounds_, i.site}; }
  T* pointer() const { return pointer_; }
  const Bounds& bounds() const { return bounds_; }

 protected:
  T* pointer_;
  Bounds bounds_;
};

template <class T>
class Global : public Accessor<T, GlobalBounds> {
  using Base = Accessor<T, GlobalBounds>;

 public:
  explicit Global(T* pointer, Site site = Site::current())
      : Base(pointer, GlobalBounds{engine().region_of(pointer, site)}) {}
  template <std::integral I>
  Global operator+(I i) const {
    return Global(this->pointer_ + i, this->bounds_);
  }
  template <std::integral I>
  Global slice(I first, I) const {
    return *this + first;
  }

 private:
  Global(T* pointer, const GlobalBounds& bounds) : Base(pointer, bounds) {}
};

template <class T>
class Shared : public Accessor<T, SharedBounds> {
  using Base = Accessor<T, SharedBounds>;

 public:
  Shared(void* begin, std::size_t bytes)
      : Base(static_cast<T*>(begin), SharedBounds{static_cast<const unsigned char*>(begin), bytes}) {}
  template <std::integral I>
  Shared operator+(I i) const {
    return Shared(this->pointer_ + i, this->bounds_);
  }
  template <std::integral I>
  Shared slice(I first, I count) const {
    T* begin = this->pointer_ + first;
    // A slice that leaves its array keeps the array's bounds, so that the access is found where it happens.
    const auto* address = reinterpret_cast<const unsigned char*>(begin);
    const std::size_t offset = static_cast<std::size_t>(address - this->bounds_.begin);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (offset > this->bounds_.bytes || offset + bytes > this->bounds_.bytes)
      return Shared(begin, this->bounds_);
    return Shared(begin, SharedBounds{address, bytes});
  }

 private:
  Shared(T* pointer, const SharedBounds& bounds) : Base(pointer, bounds) {}
};

template <class Vector, class T, class Bounds, std::integral I>
Vector load_vector(const Accessor<T, Bounds>& from, I i, Site site = Site::current()) {
  const T* address = from.pointer() + i;
  from.bounds().check(address, sizeof(Vector), Access::load, site);
  Vector value;
  std::memcpy(&value, address, sizeof(Vector));
  return value;
}
template <class Vector, class T, class Bounds, std::integral I>
void store_vector(const Accessor<T, Bounds>& to, I i, Vector value, Site site = Site::current()) {
  static_assert(!std::is_const_v<T>, "a store through an accessor to const");
  T* address = to.pointer() + i;
  to.bounds().check(address, sizeof(Vector), Access::store, site);
  std::memcpy(address, &value, sizeof(Vector));
}

template <class T>
Shared<T> static_shared(std::size_t count, Site site = Site::current()) {
  return Shared<T>(engine().static_shared(count * sizeof(T), site), count * sizeof(T));
}
template <class T>
Shared<T> dynamic_shared() {
  return Shared<T>(engine().dynamic_shared(), engine().dynamic_shared_bytes());
}

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's own names.

// --- synchronisation ---

inline void __syncthreads(Site site = Site::current()) {
  engine().sync_threads(Operation::sync_threads, false, site);
}
inline int __syncthreads_count(int predicate, Site site = Site::current()) {
  return engine().sync_threads(Operation::sync_count, predicate != 0, site);
}
inline int __syncthreads_or(int predicate, Site site = Site::current()) {
  return engine().sync_threads(Operation::sync_or, predicate != 0, site);
}
inline int __syncthreads_and(int predicate, Site site = Site::current()) {
  return engine().sync_threads(Operation::sync_and, predicate != 0, site);
}
inline void __syncwarp(unsigned mask = 0xffffffffU, Site site = Site::current()) {
  engine().exchange(Operation::sync_warp, mask, 0, 0, site);
}
inline void __threadfence() {
  engine().thread_fence();
}
inline void __threadfence_block() {}

// --- shuffles: `width` lanes form a segment of its own ---

template <class T>
T shuffle(unsigned mask, T value, int source, Site site) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a number of 4 or 8 bytes");
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::uint64_t result =
      engine().exchange(Operation::shuffle, mask, std::bit_cast<Bits>(value), source, site);
  return std::bit_cast<T>(static_cast<Bits>(result));
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, Site site = Site::current()) {
  const int lane = engine().lane_in_warp();
  return shuffle(mask, value, (lane & -width) | (source & (width - 1)), site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, Site site = Site::current()) {
  const int lane = engine().lane_in_warp();
  const int source = lane - static_cast<int>(delta);
  return shuffle(mask, value, source < (lane & -width) ? lane : source, site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, Site site = Site::current()) {
  const int lane = engine().lane_in_warp();
  const int source = lane + static_cast<int>(delta);
  return shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, Site site = Site::current()) {
  const int lane = engine().lane_in_warp();
  const int source = lane ^ lane_mask;
  return shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}

// --- votes ---

inline unsigned __ballot_sync(unsigned mask, int predicate, Site site = Site::current()) {
  return static_cast<unsigned>(engine().exchange(Operation::ballot, mask, predicate != 0, 0, site));
}
inline int __any_sync(unsigned mask, int predicate, Site site = Site::current()) {
  return static_cast<int>(engine().exchange(Operation::any, mask, predicate != 0, 0, site));
}
inline int __all_sync(unsigned mask, int predicate, Site site = Site::current()) {
  return static_cast<int>(engine().exchange(Operation::all, mask, predicate != 0, 0, site));
}
/// Refused: which lanes happen to be active together is not defined. Name the lanes instead.
unsigned __activemask() = delete;

// --- atomics: return the old value ---

template <class T, class Bounds, class Update>
T atomic_update(const AtomicOperand<T, Bounds>& operand, Site site, Update update) {
  operand.bounds.check(operand.address, sizeof(T), Access::atomic, site);
  engine().atomic_happened(operand.address);
  const T old = *operand.address;
  *operand.address = update(old);
  return old;
}
template <class T, class Bounds>
T atomicAdd(const AtomicOperand<T, Bounds>& operand, std::type_identity_t<T> value,
            Site site = Site::current()) {
  return atomic_update(operand, site, [&](T old) { return static_cast<T>(old + value); });
}
template <class T, class Bounds>
T atomicMax(const AtomicOperand<T, Bounds>& operand, std::type_identity_t<T> value,
            Site site = Site::current()) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicMax of floating-point numbers");
  return atomic_update(operand, site, [&](T old) { return old < value ? value : old; });
}
template <class T, class Bounds>
T atomicCAS(const AtomicOperand<T, Bounds>& operand, std::type_identity_t<T> compare,
            std::type_identity_t<T> value, Site site = Site::current()) {
  static_assert(std::is_integral_v<T>, "atomicCAS compares integers");
  return atomic_update(operand, site, [&](T old) { return old == compare ? value : old; });
}
template <class T, class Bounds>
T atomicExch(const AtomicOperand<T, Bounds>& operand, std::type_identity_t<T> value,
             Site site = Site::current()) {
  return atomic_update(operand, site, [&](T) { return value; });
}

// --- arithmetic that C++ lacks or that CUDA names otherwise ---

inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline float fast_exp(float x) {
  return std::exp(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
template <class T>
requires std::is_arithmetic_v<T> T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
requires std::is_arithmetic_v<T> T max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace simt_backend
}  // namespace gaugeblock::simt

// CUDA has these in the global namespace.
using gaugeblock::simt::__activemask;
using gaugeblock::simt::__all_sync;
using gaugeblock::simt::__any_sync;
using gaugeblock::simt::__ballot_sync;
using gaugeblock::simt::__fdividef;
using gaugeblock::simt::__ffs;
using gaugeblock::simt::__float_as_uint;
using gaugeblock::simt::__popc;
using gaugeblock::simt::__shfl_down_sync;
using gaugeblock::simt::__shfl_sync;
using gaugeblock::simt::__shfl_up_sync;
using gaugeblock::simt::__shfl_xor_sync;
using gaugeblock::simt::__syncthreads;
using gaugeblock::simt::__syncthreads_and;
using gaugeblock::simt::__syncthreads_count;
using gaugeblock::simt::__syncthreads_or;
using gaugeblock::simt::__syncwarp;
using gaugeblock::simt::__threadfence;
using gaugeblock::simt::__threadfence_block;
using gaugeblock::simt::__uint_as_float;
using gaugeblock::simt::atomicAdd;
using gaugeblock::simt::atomicCAS;
using gaugeblock::simt::atomicExch;
using gaugeblock::simt::atomicMax;
using gaugeblock::simt::dim3;
using gaugeblock::simt::float2;
using gaugeblock::simt::float4;
using gaugeblock::simt::int2;
using gaugeblock::simt::int4;
using gaugeblock::simt::make_float2;
using gaugeblock::simt::make_float4;
using gaugeblock::simt::max;
using gaugeblock::simt::min;
using gaugeblock::simt::rsqrtf;

#define __expf(x) (::gaugeblock::simt::fast_exp(x))  // the C library has a __expf of its own
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (::gaugeblock::simt::engine().thread_index())
#define blockIdx (::gaugeblock::simt::engine().block_index())
#define blockDim (::gaugeblock::simt::engine().block_size())
#define gridDim (::gaugeblock::simt::engine().grid_size())
// NOLINTEND(bugprone-reserved-identifier)
#define GAUGEBLOCK_STATIC_SHARED(T, name, count) \
  const ::gaugeblock::simt::Shared<T> name = ::gaugeblock::simt::static_shared<T>(count)
#define GAUGEBLOCK_DYNAMIC_SHARED(T, name) \
  const ::gaugeblock::simt::Shared<T> name = ::gaugeblock::simt::dynamic_shared<T>()
#define GAUGEBLOCK_UNROLL
#define GAUGEBLOCK_ROLLED
