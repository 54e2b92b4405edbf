// The CUDA kernels as variants of the backends simt and cuda.
#pragma once

#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Every kernel on the interpreter, and on the GPU in builds with CUDA.
std::vector<Variant> gpu_variants();

}  // namespace gaugeblock
