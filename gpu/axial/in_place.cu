// Differs from `fused_row_column`: y is written over x. x is copied to y, and every pass then reads and
// writes y alone. (The others do so in their column pass only.)
//
// It is safe for two reasons. No two blocks share a token, so no block reads what another one has written.
// And within a block the residual x[token,c] is read by the very thread that then overwrites it, while all
// else of x came to shared memory before the first write, with barriers in between.
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/axial/fused_row_column.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments, fused_pass_declines);
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  const TensorView<const float, 4> tokens = as_input(arguments.y);
  const auto run_pass = [&](bool along_rows) {
    const TransposedWeights weights(pass_of(arguments, tokens, arguments.y, along_rows), context);
    launch_fused_pass(weights.pass(), context);
  };
  launch_copy(view_of(arguments.x), view_of(arguments.y), arguments.x.shape, context);
  if (arguments.passes != AxialPasses::col) run_pass(true);
  if (arguments.row_result)
    launch_copy(view_of(tokens), view_of(*arguments.row_result), tokens.shape, context);
  if (arguments.passes != AxialPasses::row) run_pass(false);
}

}  // namespace

AxialKernel in_place() {
  return {"in_place", "y is written over x, in both passes", "unfused", declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
