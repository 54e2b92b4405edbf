// The arguments as a kernel takes them: plain structs of pointers and strides. Included by kernel sources
// only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gaugeblock/gpu/recurrence/kernel_arguments.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/launch.h"
#include "gaugeblock/gpu/simt/simt.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

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

struct RecurrenceViews {
  View4<const float> q, k, v;
  View3<const float> gate, beta;
  View4<const float> initial_state;  // data is null when there is none
  View4<float> y, final_state;
  Index B, T, H, K, V;
};

template <class T>
View3<T> view_of(const TensorView<T, 3>& view) {
  return {view.data, {view.stride[0], view.stride[1], view.stride[2]}};
}
template <class T>
View4<T> view_of(const TensorView<T, 4>& view) {
  return {view.data, {view.stride[0], view.stride[1], view.stride[2], view.stride[3]}};
}

inline RecurrenceViews views_of(const RecurrenceArguments& arguments) {
  RecurrenceViews views{};
  views.q = view_of(arguments.q);
  views.k = view_of(arguments.k);
  views.v = view_of(arguments.v);
  views.gate = view_of(arguments.gate);
  views.beta = view_of(arguments.beta);
  if (arguments.initial_state) views.initial_state = view_of(*arguments.initial_state);
  views.y = view_of(arguments.y);
  views.final_state = view_of(arguments.final_state);
  views.B = arguments.batches();
  views.T = arguments.steps();
  views.H = arguments.heads();
  views.K = arguments.key_size();
  views.V = arguments.value_size();
  return views;
}

/// The tensors of one call as accessors: what a kernel makes on its first line.
struct Tensors {
  simt::Global<const float> q, k, v, gate, beta, initial_state;
  simt::Global<float> y, final_state;

  __device__ explicit Tensors(const RecurrenceViews& views)
      : q(views.q.data),
        k(views.k.data),
        v(views.v.data),
        gate(views.gate.data),
        beta(views.beta.data),
        initial_state(views.initial_state.data),
        y(views.y.data),
        final_state(views.final_state.data) {}
};

/// Element (i,j) of the state before the first step.
__device__ inline float load_initial_state(const Tensors& tensors, const RecurrenceViews& views, Index b,
                                           Index h, Index i, Index j) {
  if (views.initial_state.data == nullptr) return 0.0F;
  return tensors.initial_state[views.initial_state.at(b, h, i, j)];
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
