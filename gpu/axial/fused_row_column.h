// The kernel of fused_row_column, which other variants run on other layouts. Included by kernel sources only.
#pragma once

#include "gaugeblock/gpu/axial/kernel_views.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

/// Runs a pass, y = x allowed, with its weights in any layout.
void launch_fused_pass(const AxialPass& pass, LaunchContext& context);

/// Why launch_fused_pass cannot take the sizes of the pass, or nothing.
std::optional<std::string> fused_pass_declines(const AxialPass& pass);

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
