// The CUDA backend in a build without CUDA.
#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

std::unique_ptr<Device> open_cuda_device(int) {
  throw NoDevice(
      "no CUDA device: this build has no CUDA backend (no CUDA compiler was found, or GAUGEBLOCK_CUDA is "
      "off)");
}

std::string current_cuda_architecture() {
  return "";
}

}  // namespace gaugeblock::gpu
