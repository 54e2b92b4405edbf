// A strided view of a tensor: where each element lies, and nothing else.
#pragma once

#include <array>
#include <cstdint>

namespace gaugeblock {

/// Every extent, stride and offset is a signed 64-bit number of elements, so that a tensor may pass 2^31
/// elements.
using Index = std::int64_t;

/// View of a tensor with `Rank` dimensions that somebody else owns.
///
/// `data`   address of element (0, …, 0)
/// `shape`  extents
/// `stride` distance in elements between neighbours along each dimension; may be 0 or negative for inputs
template <class T, int Rank>
struct TensorView {
  T* data = nullptr;
  std::array<Index, Rank> shape{};
  std::array<Index, Rank> stride{};

  template <class... Subscript>
  T& operator()(Subscript... subscript) const {
    static_assert(sizeof...(Subscript) == Rank, "one subscript per dimension");
    const std::array<Index, Rank> at{static_cast<Index>(subscript)...};
    Index offset = 0;
    for (int dimension = 0; dimension < Rank; ++dimension) offset += at[dimension] * stride[dimension];
    return data[offset];
  }
};

/// The view of a C-ordered tensor without gaps.
template <class T, int Rank>
TensorView<T, Rank> contiguous_view(T* data, const std::array<Index, Rank>& shape) {
  TensorView<T, Rank> view{data, shape, {}};
  Index stride = 1;
  for (int dimension = Rank - 1; dimension >= 0; --dimension) {
    view.stride[dimension] = stride;
    stride *= shape[dimension];
  }
  return view;
}

}  // namespace gaugeblock
