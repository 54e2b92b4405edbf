// A copy between strided tensors: a thread an element, in C order of the shape.
#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int threads = 256;

struct Shape4 {
  Index extent[4];
};

__global__ void __launch_bounds__(threads)
    copy_kernel(View4<const float> from_view, View4<float> to_view, Shape4 shape) {
  const simt::Global<const float> from(from_view.data);
  const simt::Global<float> to(to_view.data);
  const Index at = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  const Index d = at % shape.extent[3], rest = at / shape.extent[3];
  const Index c = rest % shape.extent[2], ab = rest / shape.extent[2];
  const Index b = ab % shape.extent[1], a = ab / shape.extent[1];
  if (a >= shape.extent[0]) return;
  const float value = from[from_view.at(a, b, c, d)];
  to[to_view.at(a, b, c, d)] = value;
}

}  // namespace

void launch_copy(const View4<const float>& from, const View4<float>& to, const std::array<Index, 4>& shape,
                 LaunchContext& context) {
  const Index elements = shape[0] * shape[1] * shape[2] * shape[3];
  launch(GAUGEBLOCK_KERNEL(copy_kernel), grid_of(ceil_div(elements, threads)), dim3(threads), 0, context,
         from, to, Shape4{{shape[0], shape[1], shape[2], shape[3]}});
}

std::optional<std::string> copy_declines(Index elements) {
  return too_many_blocks(ceil_div(elements, threads));
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
