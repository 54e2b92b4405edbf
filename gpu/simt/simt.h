// One kernel source, two compilers.
//
// nvcc sees plain CUDA: the accessors below are pointers, and cost nothing. A C++ compiler sees an
// interpreter: the same names, run on the CPU by interpreter.h, every access watched.
//
// A kernel follows four rules, all of them legal CUDA:
// - It touches memory through accessors only, made on its first lines:
//     __global__ void scale(const float* __restrict__ x_, float* __restrict__ y_, int n) {
//       const simt::Global<const float> x(x_);
//       const simt::Global<float> y(y_);
//   (`__restrict__` works on parameters only.) Elements are 4, 8 or 16 bytes wide.
// - Shared memory is declared with GAUGEBLOCK_STATIC_SHARED or GAUGEBLOCK_DYNAMIC_SHARED.
// - An element is loaded into a variable of its own type, not `auto`: on the CPU, x[i] is a reference that
//   remembers the source line.
// - Wider words are simt::load_vector<float4>(x, i) and simt::store_vector(y, i, value), i in elements of x.
#pragma once

#if defined(__CUDACC__)
#define GAUGEBLOCK_BACKEND cuda_backend
#else
#define GAUGEBLOCK_BACKEND simt_backend
#endif

#if defined(__CUDACC__)

#include <cstddef>

/// `count` elements of shared memory that the block owns, under the name `name`.
#define GAUGEBLOCK_STATIC_SHARED(T, name, count)      \
  __shared__ __align__(16) T name##_storage[(count)]; \
  const ::gaugeblock::simt::Shared<T> name(name##_storage)
/// The launch's dynamic shared memory as an array of T.
#define GAUGEBLOCK_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char gaugeblock_dynamic_shared[]; \
  const ::gaugeblock::simt::Shared<T> name(reinterpret_cast<T*>(gaugeblock_dynamic_shared))
/// Before a loop: unroll it.
#define GAUGEBLOCK_UNROLL _Pragma("unroll")
#define GAUGEBLOCK_ROLLED _Pragma("unroll 1")

namespace gaugeblock::simt {
inline namespace cuda_backend {

/// Whether the interpreter runs what is compiled here.
inline constexpr bool interpreted = false;

template <class T>
class Accessor {
 public:
  __device__ __forceinline__ explicit Accessor(T* pointer) : pointer_(pointer) {}
  template <class Index>
  __device__ __forceinline__ T& operator[](Index i) const {
    return pointer_[i];
  }
  template <class Index>
  __device__ __forceinline__ Accessor operator+(Index i) const {
    return Accessor(pointer_ + i);
  }
  /// Elements `first` to `first + count - 1`; the interpreter checks the narrower bounds.
  template <class Index>
  __device__ __forceinline__ Accessor slice(Index first, [[maybe_unused]] Index count) const {
    return Accessor(pointer_ + first);
  }
  __device__ __forceinline__ T* pointer() const { return pointer_; }

 private:
  T* pointer_;
};

template <class T>
using Global = Accessor<T>;
template <class T>
using Shared = Accessor<T>;

template <class Vector, class T, class Index>
__device__ __forceinline__ Vector load_vector(const Accessor<T>& from, Index i) {
  return *reinterpret_cast<const Vector*>(from.pointer() + i);
}
template <class Vector, class T, class Index>
__device__ __forceinline__ void store_vector(const Accessor<T>& to, Index i, Vector value) {
  *reinterpret_cast<Vector*>(to.pointer() + i) = value;
}

}  // namespace cuda_backend
}  // namespace gaugeblock::simt

#else
#include "gaugeblock/gpu/simt/host_kernel.h"
#endif
