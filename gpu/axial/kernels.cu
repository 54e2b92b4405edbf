// The list of axial kernels. A new one is its file and one line here.
#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/simt/simt.h"

#define GAUGEBLOCK_AXIAL_KERNELS(kernel)                                                               \
  kernel(fused_row_column) kernel(permuted_column) kernel(thread_per_token_head) kernel(stored_scores) \
      kernel(online_softmax) kernel(row_major_weights) kernel(conflict_free) kernel(in_place) kernel(tiled)

// Kernels whose instructions the interpreter does not know.
#if defined(__CUDACC__)
#define GAUGEBLOCK_AXIAL_CUDA_KERNELS(kernel) kernel(fused_pass_split_half) kernel(warpgroup_pass_split_half)
#else
#define GAUGEBLOCK_AXIAL_CUDA_KERNELS(kernel)
#endif

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

#define GAUGEBLOCK_DECLARE(name) AxialKernel name();
GAUGEBLOCK_AXIAL_KERNELS(GAUGEBLOCK_DECLARE)
GAUGEBLOCK_AXIAL_CUDA_KERNELS(GAUGEBLOCK_DECLARE)

const std::vector<AxialKernel>& axial_kernels() {
#define GAUGEBLOCK_CALL(name) name(),
  static const std::vector<AxialKernel> kernels{GAUGEBLOCK_AXIAL_KERNELS(GAUGEBLOCK_CALL)
                                                    GAUGEBLOCK_AXIAL_CUDA_KERNELS(GAUGEBLOCK_CALL)};
  return kernels;
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
