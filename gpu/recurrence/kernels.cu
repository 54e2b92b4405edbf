// The list of recurrence kernels. A new one is its file and one line here.
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/simt/simt.h"

#define GAUGEBLOCK_RECURRENCE_KERNELS(kernel)                                                                \
  kernel(block_per_column_serial_sum) kernel(thread_per_column) kernel(shared_state) kernel(warp_per_column) \
      kernel(warp_per_column_by_eight) kernel(warp_per_column_by_head) kernel(warps_per_column)              \
          kernel(staged_inputs) kernel(vector_loads) kernel(scan_then_contract) kernel(prefix_product)       \
              kernel(prefix_product_segmented) kernel(chunked) kernel(tile_masked_attention)                 \
                  kernel(register_masked_attention)

// Kernels for tensor cores, which the interpreter does not have.
#if defined(__CUDACC__)
#define GAUGEBLOCK_TENSOR_CORE_RECURRENCE_KERNELS(kernel) kernel(chunked_split_half)
#else
#define GAUGEBLOCK_TENSOR_CORE_RECURRENCE_KERNELS(kernel)
#endif

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {

#define GAUGEBLOCK_DECLARE(name) RecurrenceKernel name();
GAUGEBLOCK_RECURRENCE_KERNELS(GAUGEBLOCK_DECLARE)
GAUGEBLOCK_TENSOR_CORE_RECURRENCE_KERNELS(GAUGEBLOCK_DECLARE)

const std::vector<RecurrenceKernel>& recurrence_kernels() {
#define GAUGEBLOCK_CALL(name) name(),
  static const std::vector<RecurrenceKernel> kernels{GAUGEBLOCK_RECURRENCE_KERNELS(
      GAUGEBLOCK_CALL) GAUGEBLOCK_TENSOR_CORE_RECURRENCE_KERNELS(GAUGEBLOCK_CALL)};
  return kernels;
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
