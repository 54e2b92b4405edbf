// A float32 tensor of the harness: a strided view together with the guarded buffer it lies in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// The marked NaN that fills whatever a kernel must not read (outside the views) or must write (outputs).
inline constexpr std::uint32_t poison_bits = 0x7fc5a5a5U;
float poison();

/// `shape` and `stride` describe the view (strides in elements, 0 allowed), whose first element is
/// `buffer[offset]`. Elements of the buffer that the view does not reach hold the poison, and at least
/// `guard_elems` of them lie before and behind everything the view reaches.
struct Tensor {
  static constexpr Index guard_elems = 64;

  std::vector<Index> shape;
  std::vector<Index> stride;
  Index offset = 0;
  std::vector<float> buffer;

  /// A C-ordered tensor between two guard bands, every element poisoned.
  static Tensor contiguous(std::vector<Index> shape);

  /// A tensor with the given strides between two guard bands, every element poisoned.
  /// Throws InputError when the number of elements overflows.
  static Tensor strided(std::vector<Index> shape, std::vector<Index> stride);

  Index size() const;  ///< number of elements of the view
  int rank() const { return static_cast<int>(shape.size()); }

  /// Offset into `buffer` of the element with C-order number `element`.
  Index position(Index element) const;

  /// Values in C order, and their assignment.
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

/// Bitwise equality of two floats: distinguishes -0 from 0 and compares NaN payloads.
bool same_bits(float a, float b);

/// "[2,128,4,24]"
std::string shape_text(const std::vector<Index>& shape);

/// Subscripts of the element with C-order number `element`.
std::vector<Index> subscripts(const std::vector<Index>& shape, Index element);

}  // namespace gaugeblock
