// The kernels of the recurrence as variants of the backends simt and cuda.
#pragma once

#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Every kernel on the interpreter, and on the GPU in builds with CUDA.
std::vector<Variant> recurrence_gpu_variants();

}  // namespace gaugeblock
