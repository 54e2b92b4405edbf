// The arguments as a kernel takes them: one pass, as sequences of tokens. Included by kernel sources only.
#pragma once

#include <optional>
#include <string>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/runtime/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// One pass. A sequence is (b, other): the row pass has one for each (b,h), with the W tokens along w; the
/// column pass one for each (b,w), with the H tokens along h. Only the strides of x and y differ.
struct AxialPass {
  View4<const float> x;            // [B,others,L,D]
  View4<float> y;                  // [B,others,L,D]; may be x itself
  View1<const float> norm_weight;  // [D]
  View1<const float> norm_bias;    // [D]
  View2<const float> qkv_weight;   // [3D,D]
  View2<const float> out_weight;   // [D,D]
  View1<const float> out_bias;     // [D]
  Index B, others, L, D, heads;
  float eps;

  __host__ __device__ Index sequences() const { return B * others; }
};

/// The tensors of a pass as accessors: what a kernel makes on its first line.
struct PassTensors {
  simt::Global<const float> x, norm_weight, norm_bias, qkv_weight, out_weight, out_bias;
  simt::Global<float> y;

  __device__ explicit PassTensors(const AxialPass& pass)
      : x(pass.x.data),
        norm_weight(pass.norm_weight.data),
        norm_bias(pass.norm_bias.data),
        qkv_weight(pass.qkv_weight.data),
        out_weight(pass.out_weight.data),
        out_bias(pass.out_bias.data),
        y(pass.y.data) {}
};

/// [B,H,W,D] as [B,others,L,D].
template <class T>
View4<T> sequences_of(const TensorView<T, 4>& view, bool along_rows) {
  const auto& s = view.stride;
  if (along_rows) return {view.data, {s[0], s[1], s[2], s[3]}};
  return {view.data, {s[0], s[2], s[1], s[3]}};
}

inline TensorView<const float, 4> as_input(const TensorView<float, 4>& view) {
  return {view.data, view.shape, view.stride};
}

inline View4<const float> as_input(const View4<float>& view) {
  return {view.data, {view.stride[0], view.stride[1], view.stride[2], view.stride[3]}};
}

/// The row pass or the column pass from `x` to `y`.
inline AxialPass pass_of(const AxialArguments& arguments, const TensorView<const float, 4>& x,
                         const TensorView<float, 4>& y, bool along_rows) {
  const AxialPassParameters& parameters = along_rows ? arguments.row : arguments.col;
  const auto vector = [](const TensorView<const float, 1>& view) {
    return View1<const float>{view.data, view.stride[0]};
  };
  const auto matrix = [](const TensorView<const float, 2>& view) {
    return View2<const float>{view.data, {view.stride[0], view.stride[1]}};
  };
  AxialPass pass{};
  pass.x = sequences_of(x, along_rows);
  pass.y = sequences_of(y, along_rows);
  pass.norm_weight = vector(parameters.norm_weight);
  pass.norm_bias = vector(parameters.norm_bias);
  pass.qkv_weight = matrix(parameters.qkv_weight);
  pass.out_weight = matrix(parameters.out_weight);
  pass.out_bias = vector(parameters.out_bias);
  pass.B = arguments.batches();
  pass.others = along_rows ? arguments.height() : arguments.width();
  pass.L = along_rows ? arguments.width() : arguments.height();
  pass.D = arguments.channels();
  pass.heads = arguments.heads;
  pass.eps = arguments.eps;
  return pass;
}

/// The first reason that `reason_of(pass)` gives for a pass that is to run.
template <class ReasonOf>
std::optional<std::string> passes_decline(const AxialArguments& arguments, const ReasonOf& reason_of) {
  for (const bool along_rows : {true, false}) {
    if (arguments.passes == (along_rows ? AxialPasses::col : AxialPasses::row)) continue;
    if (auto reason = reason_of(pass_of(arguments, arguments.x, arguments.y, along_rows)))
      return (along_rows ? "row pass: " : "column pass: ") + *reason;
  }
  return std::nullopt;
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
