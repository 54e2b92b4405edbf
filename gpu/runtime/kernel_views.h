// What every kernel source needs: plain structs of pointers and strides, and the limits of grids and memory.
// Included by kernel sources only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gaugeblock/gpu/runtime/launch.h"
#include "gaugeblock/gpu/simt/simt.h"
#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// Pointer and element strides of a tensor with one or two dimensions.
template <class T>
struct View1 {
  T* data;
  Index stride;
  __host__ __device__ Index at(Index a) const { return a * stride; }
};
template <class T>
struct View2 {
  T* data;
  Index stride[2];
  __host__ __device__ Index at(Index a, Index b) const { return a * stride[0] + b * stride[1]; }
};

/// Pointer and element strides of a tensor with three or four dimensions.
template <class T>
struct View3 {
  T* data;
  Index stride[3];
  __host__ __device__ Index at(Index a, Index b, Index c) const {
    return a * stride[0] + b * stride[1] + c * stride[2];
  }
};
template <class T>
struct View4 {
  T* data;
  Index stride[4];
  __host__ __device__ Index at(Index a, Index b, Index c, Index d) const {
    return a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
  }
};

template <class T>
View3<T> view_of(const TensorView<T, 3>& view) {
  return {view.data, {view.stride[0], view.stride[1], view.stride[2]}};
}
template <class T>
View4<T> view_of(const TensorView<T, 4>& view) {
  return {view.data, {view.stride[0], view.stride[1], view.stride[2], view.stride[3]}};
}

/// Blocks of the x axis of a grid, the only one that goes beyond 65535.
constexpr Index max_blocks = 2147483647;

inline std::optional<std::string> too_many_blocks(Index blocks) {
  if (blocks <= max_blocks) return std::nullopt;
  return std::to_string(blocks) + " blocks are needed, a grid has at most " + std::to_string(max_blocks);
}

inline dim3 grid_of(Index blocks) {
  return dim3(static_cast<unsigned>(blocks));
}

inline std::size_t floats_bytes(Index count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

/// The most shared memory a block can have, in floats.
constexpr Index max_shared_floats = 227 * 1024 / 4;

inline std::optional<std::string> too_much_shared(Index floats) {
  if (floats <= max_shared_floats) return std::nullopt;
  return std::to_string(4 * floats) + " bytes of shared memory are needed, a block has at most " +
         std::to_string(4 * max_shared_floats);
}

/// The most device memory a kernel asks for beside its outputs, in floats: 8 GB.
constexpr Index max_workspace_floats = Index{1} << 31;

inline std::optional<std::string> too_much_workspace(Index floats) {
  if (floats <= max_workspace_floats) return std::nullopt;
  return std::to_string(4 * floats) + " bytes of workspace are needed, allowed are " +
         std::to_string(4 * max_workspace_floats);
}

__host__ __device__ constexpr Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
