// A float32 tensor of the harness: a strided view together with the guarded buffer it lies in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// The marked NaN that fills whatever a kernel must not read (outside the views) or must write (outputs).
inline constexpr std::uint32_t poison_bits = 0x7fc5a5a5U;
float poison();

/// Allocates at multiples of 256 bytes, as a GPU's allocator does, so that whether a view is aligned for
/// vector loads depends on its offset and strides alone and never on luck.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{256};

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, alignment); }
  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

/// `shape` and `stride` describe the view (strides in elements, 0 allowed), whose first element is
/// `buffer[offset]`. Elements of the buffer that the view does not reach hold the poison, and at least
/// `guard_elems` of them lie before and behind everything the view reaches.
struct Tensor {
  static constexpr Index guard_elems = 64;

  std::vector<Index> shape;
  std::vector<Index> stride;
  Index offset = 0;
  std::vector<float, AlignedAllocator<float>> buffer;

  /// A C-ordered tensor between two guard bands, every element poisoned.
  /// Throws InputError when the number of elements overflows or does not fit into memory.
  static Tensor contiguous(std::vector<Index> shape);

  /// A tensor with the given strides (0 and negative ones allowed) between two guard bands, every element
  /// poisoned. The front band is `shift` elements longer, so that the lowest address of the view is `shift`
  /// elements behind a multiple of 256 bytes. Throws InputError like contiguous().
  static Tensor strided(std::vector<Index> shape, std::vector<Index> stride, Index shift = 0);

  Index size() const;  ///< number of elements of the view
  int rank() const { return static_cast<int>(shape.size()); }

  /// Offset into `buffer` of the element with C-order number `element`.
  Index position(Index element) const;

  /// Values in C order, and their assignment. Where elements share an address the last value stays.
  std::vector<float> values() const;
  void assign(const std::vector<float>& values);

  /// Number of poisoned elements outside the view that no longer hold the poison, bit for bit.
  Index damaged_guards() const;

  template <int Rank>
  TensorView<const float, Rank> view() const {
    return make_view<const float, Rank>(buffer.data() + offset);
  }
  template <int Rank>
  TensorView<float, Rank> mutable_view() {
    return make_view<float, Rank>(buffer.data() + offset);
  }

 private:
  template <class T, int Rank>
  TensorView<T, Rank> make_view(T* data) const {
    TensorView<T, Rank> view{data, {}, {}};
    for (int dimension = 0; dimension < Rank; ++dimension) {
      view.shape[dimension] = shape.at(dimension);
      view.stride[dimension] = stride.at(dimension);
    }
    return view;
  }
};

/// Product of extents; throws InputError when it overflows or an extent is negative. `what` names the tensor.
Index element_count(const std::vector<Index>& shape, const std::string& what);

/// Strides of a C-ordered tensor without gaps; throws InputError like element_count().
std::vector<Index> contiguous_strides(const std::vector<Index>& shape, const std::string& what);

/// Throws InputError when this machine has no room for that many floats: said before the attempt, because a
/// system that overcommits would only notice when it ends the program.
void require_memory(double elements, const std::string& what);

/// Bitwise equality of two floats: distinguishes -0 from 0 and compares NaN payloads.
bool same_bits(float a, float b);

/// "[2,128,4,24]"
std::string shape_text(const std::vector<Index>& shape);

/// Subscripts of the element with C-order number `element`.
std::vector<Index> subscripts(const std::vector<Index>& shape, Index element);

/// Calls visit(at) for the subscripts `at` of every element in C order.
template <class Visitor>
void for_each_subscript(const std::vector<Index>& shape, Visitor&& visit) {
  for (const Index extent : shape)
    if (extent == 0) return;
  std::vector<Index> at(shape.size(), 0);
  while (true) {
    visit(static_cast<const std::vector<Index>&>(at));
    std::size_t dimension = shape.size();
    while (dimension > 0 && ++at[dimension - 1] == shape[dimension - 1]) at[--dimension] = 0;
    if (dimension == 0) return;
  }
}

}  // namespace gaugeblock
