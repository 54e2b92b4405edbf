// Kernel arguments that have sizes and strides, and no memory behind them: for what looks at nothing else.
#pragma once

#include "gaugeblock/gpu/axial/kernel_arguments.h"
#include "gaugeblock/gpu/recurrence/kernel_arguments.h"

namespace gaugeblock::gpu {

/// q, k [B,T,H,K] and v [B,T,H,V], contiguous.
inline RecurrenceArguments recurrence_of_sizes(Index B, Index T, Index H, Index K, Index V) {
  RecurrenceArguments arguments;
  arguments.q = arguments.k = contiguous_view<const float, 4>(nullptr, {B, T, H, K});
  arguments.v = contiguous_view<const float, 4>(nullptr, {B, T, H, V});
  arguments.gate = arguments.beta = contiguous_view<const float, 3>(nullptr, {B, T, H});
  arguments.y = contiguous_view<float, 4>(nullptr, {B, T, H, V});
  arguments.final_state = contiguous_view<float, 4>(nullptr, {B, H, K, V});
  return arguments;
}

/// x [B,H,W,D], contiguous.
inline AxialArguments axial_of_sizes(Index B, Index H, Index W, Index D, Index heads, AxialPasses passes) {
  AxialArguments arguments;
  arguments.x = contiguous_view<const float, 4>(nullptr, {B, H, W, D});
  arguments.row = {
      contiguous_view<const float, 1>(nullptr, {D}), contiguous_view<const float, 1>(nullptr, {D}),
      contiguous_view<const float, 2>(nullptr, {3 * D, D}), contiguous_view<const float, 2>(nullptr, {D, D}),
      contiguous_view<const float, 1>(nullptr, {D})};
  arguments.col = arguments.row;
  arguments.heads = heads;
  arguments.passes = passes;
  arguments.y = contiguous_view<float, 4>(nullptr, {B, H, W, D});
  return arguments;
}

}  // namespace gaugeblock::gpu
