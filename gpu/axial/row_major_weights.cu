// Differs from `fused_row_column`: the kernel reads the weights as PyTorch stores them, [outputs, inputs],
// where the others transpose them first. Threads of neighbouring channels then read words a whole row apart,
// one 32-byte sector each; the arithmetic is the same.
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/axial/fused_row_column.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments, fused_pass_declines);
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) { launch_fused_pass(pass, context); });
}

}  // namespace

AxialKernel row_major_weights() {
  return {"row_major_weights", "weights read as PyTorch stores them instead of transposed first", "unfused",
          declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
