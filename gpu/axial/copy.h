// Copies between strided tensors: the transpose of weights and of tokens, and the order of the passes.
// Included by kernel sources only.
#pragma once

#include <array>

#include "gaugeblock/gpu/axial/kernel_views.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// to[a,b,c,d] = from[a,b,c,d]. A transpose is a copy between views whose strides differ in order.
void launch_copy(const View4<const float>& from, const View4<float>& to, const std::array<Index, 4>& shape,
                 LaunchContext& context);

/// Why launch_copy cannot take so many elements, or nothing.
std::optional<std::string> copy_declines(Index elements);

/// Weights of a pass as [inputs, outputs] on the device, so that threads of neighbouring outputs read
/// neighbouring words. Must live until the pass has run.
class TransposedWeights {
 public:
  TransposedWeights(const AxialPass& pass, LaunchContext& context)
      : pass_(pass),
        qkv_(*context.device, 3 * pass.D * pass.D, "qkv_weight transposed"),
        out_(*context.device, pass.D * pass.D, "out_weight transposed") {
    pass_.qkv_weight = transpose(pass.qkv_weight, qkv_, 3 * pass.D, pass.D, context);
    pass_.out_weight = transpose(pass.out_weight, out_, pass.D, pass.D, context);
  }

  /// The same pass, with the transposed weights.
  const AxialPass& pass() const { return pass_; }

 private:
  static View2<const float> transpose(const View2<const float>& weight, const DeviceBuffer& buffer,
                                      Index outputs, Index inputs, LaunchContext& context) {
    launch_copy({weight.data, {0, 0, weight.stride[0], weight.stride[1]}},
                {buffer.data(), {0, 0, 1, outputs}}, {1, 1, outputs, inputs}, context);
    return {buffer.data(), {1, outputs}};
  }

  AxialPass pass_;
  DeviceBuffer qkv_, out_;
};

/// Runs the passes that are asked for, by `run_pass(pass, along_rows)`. The column pass overwrites the row
/// pass's result in y, unless that is wanted: then it reads it from there.
template <class RunPass>
void run_passes(const AxialArguments& arguments, LaunchContext& context, const RunPass& run_pass) {
  TensorView<const float, 4> x = arguments.x;
  if (arguments.passes != AxialPasses::col) {
    const bool keep = arguments.passes == AxialPasses::both && arguments.row_result;
    const TensorView<float, 4>& result = keep ? *arguments.row_result : arguments.y;
    run_pass(pass_of(arguments, x, result, true), true);
    x = as_input(result);
  }
  if (arguments.row_result && arguments.row_result->data != x.data)
    launch_copy(view_of(x), view_of(*arguments.row_result), x.shape, context);
  if (arguments.passes != AxialPasses::row) run_pass(pass_of(arguments, x, arguments.y, false), false);
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
