// From one pass on prepared memory to a whole kernel: where the workspace has what, and a run that allocates
// it. Included by CUDA kernel sources only.
#pragma once

#include <algorithm>

#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// The passes that are asked for, as run_passes() will run them.
template <class Visit>
void for_each_pass(const AxialArguments& arguments, const Visit& visit) {
  TensorView<const float, 4> x = arguments.x;
  if (arguments.passes != AxialPasses::col) {
    const bool keep = arguments.passes == AxialPasses::both && arguments.row_result;
    const TensorView<float, 4>& result = keep ? *arguments.row_result : arguments.y;
    visit(pass_of(arguments, x, result, true), true);
    x = as_input(result);
  }
  if (arguments.passes != AxialPasses::row) visit(pass_of(arguments, x, arguments.y, false), false);
}

/// Pass: a type with static functions weights_bytes(pass) and slots_bytes(pass), multiples of 256,
/// prepare(pass, weights, context) and launch(pass, weights, slots, follows_pass, context).
template <class Pass>
struct OnWorkspace {
  /// [parameters of the row pass][of the column pass][slots, for one pass at a time]
  struct Layout {
    std::size_t row = 0, col = 0, slots = 0;

    explicit Layout(const AxialArguments& arguments) {
      for_each_pass(arguments, [&](const AxialPass& pass, bool along_rows) {
        (along_rows ? row : col) = Pass::weights_bytes(pass);
        slots = std::max(slots, Pass::slots_bytes(pass));
      });
    }
    void* weights(void* workspace, bool along_rows) const {
      return static_cast<char*>(workspace) + (along_rows ? 0 : row);
    }
    void* slots_in(void* workspace) const { return static_cast<char*>(workspace) + row + col; }
  };

  static std::size_t workspace_bytes(const AxialArguments& arguments) {
    const Layout layout(arguments);
    return layout.row + layout.col + layout.slots;
  }

  static void prepare(const AxialArguments& arguments, void* workspace, LaunchContext& context) {
    const Layout layout(arguments);
    for_each_pass(arguments, [&](const AxialPass& pass, bool along_rows) {
      Pass::prepare(pass, layout.weights(workspace, along_rows), context);
    });
  }

  static void launch(const AxialArguments& arguments, void* workspace, LaunchContext& context) {
    const Layout layout(arguments);
    run_passes(arguments, context, [&](const AxialPass& pass, bool along_rows) {
      const bool follows_pass = !along_rows && arguments.passes == AxialPasses::both;
      Pass::launch(pass, layout.weights(workspace, along_rows), layout.slots_in(workspace), follows_pass,
                   context);
    });
  }

  static void run(const AxialArguments& arguments, LaunchContext& context) {
    const auto floats = static_cast<Index>(workspace_bytes(arguments) / sizeof(float));
    const DeviceBuffer workspace(*context.device, floats, "workspace");
    prepare(arguments, workspace.data(), context);
    launch(arguments, workspace.data(), context);
  }

  static AxialWorkspaceSteps steps() { return {workspace_bytes, prepare, launch}; }
};

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
