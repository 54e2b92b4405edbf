// Differs from `fused_row_column`: the column pass reads no columns. Its tokens are first transposed to
// [B,W,H,D], where a column lies like a row; the same kernel runs on them in place, and the result is
// transposed back.
//
// Two more trips through memory, for reads that are contiguous beyond the D floats of a token. The same
// arithmetic, and a workspace as large as x.
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/axial/fused_row_column.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

std::optional<std::string> declines(const AxialArguments& arguments) {
  if (auto reason = passes_decline(arguments, fused_pass_declines)) return reason;
  if (arguments.passes == AxialPasses::row) return std::nullopt;
  return too_much_workspace(arguments.batches() * arguments.height() * arguments.width() *
                            arguments.channels());
}

void run_column_pass(const AxialPass& pass, LaunchContext& context) {
  const std::array<Index, 4> shape{pass.B, pass.others, pass.L, pass.D};
  const DeviceBuffer tokens(*context.device, pass.sequences() * pass.L * pass.D, "tokens transposed");
  const View4<float> transposed{tokens.data(), {pass.others * pass.L * pass.D, pass.L * pass.D, pass.D, 1}};
  AxialPass on_rows = pass;
  on_rows.x = as_input(transposed);
  on_rows.y = transposed;
  launch_copy(pass.x, transposed, shape, context);
  launch_fused_pass(on_rows, context);
  launch_copy(as_input(transposed), pass.y, shape, context);
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool along_rows) {
    const TransposedWeights weights(pass, context);
    if (along_rows)
      launch_fused_pass(weights.pass(), context);
    else
      run_column_pass(weights.pass(), context);
  });
}

}  // namespace

AxialKernel permuted_column() {
  return {"permuted_column",
          "the column pass through an explicit transpose, the same kernel on its rows, and back", "unfused",
          declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
