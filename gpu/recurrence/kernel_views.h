// The arguments as a kernel takes them: plain structs of pointers and strides. Included by kernel sources
// only.
#pragma once

#include <cstdint>

#include "gaugeblock/gpu/recurrence/kernel_arguments.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

struct RecurrenceViews {
  View4<const float> q, k, v;
  View3<const float> gate, beta;
  View4<const float> initial_state;  // data is null when there is none
  View4<float> y, final_state;
  Index B, T, H, K, V;
};

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

/// Whether every row can be read or written in pieces of `elements` floats, each at a multiple of its size.
template <class T>
bool rows_are_aligned(const TensorView<T, 4>& view, Index elements) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % (sizeof(T) * static_cast<std::uintptr_t>(elements)) !=
          0 ||
      view.stride[3] != 1 || view.shape[3] % elements != 0)
    return false;
  for (int dimension = 0; dimension < 3; ++dimension)
    if (view.stride[dimension] % elements != 0) return false;
  return true;
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

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
