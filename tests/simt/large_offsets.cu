// Offsets past 2^31 elements: every kernel on tensors of more elements than a 32-bit offset reaches. The last
// batch of such a run must have the bits of a run on that batch alone, and so must the first. Needs a GPU
// with 120 GB; says `not run` where there is none.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace {

using namespace gaugeblock;

constexpr std::uint64_t needed_bytes = 120'000'000'000;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw gpu::DeviceError(cudaGetErrorString(error));
}

// Values from low to low + scale, from the position alone.
__global__ void fill_values(float* to, std::int64_t count, std::uint32_t salt, float low, float scale) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    auto bits = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL + salt;
    bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9ULL;
    to[i] = low + scale * (static_cast<float>((bits >> 40) & 0xffffff) * 0x1p-24F);
  }
}

/// A contiguous tensor whose first dimension counts batches.
template <int Rank>
struct Whole {
  std::array<Index, Rank> shape;
  gpu::DeviceBuffer buffer;

  Whole(gpu::Device& device, const std::array<Index, Rank>& shape_, const char* name)
      : shape(shape_), buffer(device, count(shape_), name) {}
  static Index count(const std::array<Index, Rank>& shape) {
    Index all = 1;
    for (const Index extent : shape) all *= extent;
    return all;
  }
  void fill(std::uint32_t salt, float low, float scale) {
    fill_values<<<4096, 256>>>(buffer.data(), buffer.count(), salt, low, scale);
    check(cudaGetLastError());
  }
  Index batch_elements() const { return buffer.count() / shape[0]; }
  std::vector<float> batch(Index b) const {
    std::vector<float> values(static_cast<std::size_t>(batch_elements()));
    buffer.download(values.data(), batch_elements(), b * batch_elements());
    return values;
  }
  /// The batch alone, in a buffer of its own.
  Whole alone(gpu::Device& device, Index b) const {
    std::array<Index, Rank> one = shape;
    one[0] = 1;
    Whole copy(device, one, buffer.name().c_str());
    copy.buffer.upload(batch(b));
    return copy;
  }
  template <class T>
  TensorView<T, Rank> view() const {
    return contiguous_view<T, Rank>(buffer.data(), shape);
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

/// The largest difference, as a part of the largest value; NaN where there is one.
float distance(const std::vector<float>& a, const std::vector<float>& b) {
  float difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float here = std::abs(a[i] - b[i]);
    if (!(here <= difference)) difference = here;
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

/// chunked_split_half cuts few batches into more segments of time than many, which gives other bits; a wrong
/// offset gives quite other values.
bool same_bits_alone(const gpu::RecurrenceKernel& kernel) {
  return !kernel.split_half;
}
bool same_bits_alone(const gpu::AxialKernel&) {
  return true;
}

struct Recurrence {
  Whole<4> q, k, v, y, final_state;
  Whole<3> gate, beta;

  Recurrence(gpu::Device& device, Index B, Index T, Index K, Index V)
      : q(device, {B, T, 1, K}, "q"),
        k(device, {B, T, 1, K}, "k"),
        v(device, {B, T, 1, V}, "v"),
        y(device, {B, T, 1, V}, "y"),
        final_state(device, {B, 1, K, V}, "final_state"),
        gate(device, {B, T, 1}, "gate"),
        beta(device, {B, T, 1}, "beta") {
    q.fill(1, -1, 2);
    k.fill(2, -1, 2);
    v.fill(3, -1, 2);
    gate.fill(4, 0.9375F, 0.0625F);
    beta.fill(5, 0.5F, 1);
  }
  Recurrence(gpu::Device& device, const Recurrence& whole, Index b)
      : q(whole.q.alone(device, b)),
        k(whole.k.alone(device, b)),
        v(whole.v.alone(device, b)),
        y(whole.y.alone(device, b)),
        final_state(whole.final_state.alone(device, b)),
        gate(whole.gate.alone(device, b)),
        beta(whole.beta.alone(device, b)) {}

  gpu::RecurrenceArguments arguments() const {
    return {q.view<const float>(),    k.view<const float>(),    v.view<const float>(),
            gate.view<const float>(), beta.view<const float>(), std::nullopt,
            y.view<float>(),          final_state.view<float>()};
  }
  void reset() {
    y.buffer.fill_marked();
    final_state.buffer.fill_marked();
  }
  std::vector<float> results(Index b) const {
    std::vector<float> all = y.batch(b);
    const std::vector<float> state = final_state.batch(b);
    all.insert(all.end(), state.begin(), state.end());
    return all;
  }
};

struct Axial {
  static constexpr Index D = 8;
  static constexpr Index heads = 2;
  Whole<4> x, y;
  Whole<1> weights;  // every parameter is a part of it

  Axial(gpu::Device& device, Index B, Index W)
      : x(device, {B, 1, W, D}, "x"), y(device, {B, 1, W, D}, "y"), weights(device, {3 * D * D}, "weights") {
    x.fill(6, -1, 2);
    weights.fill(7, -0.5F, 1);
  }
  Axial(gpu::Device& device, const Axial& whole, Index b)
      : x(whole.x.alone(device, b)), y(whole.y.alone(device, b)), weights(device, {3 * D * D}, "weights") {
    weights.fill(7, -0.5F, 1);
  }
  gpu::AxialArguments arguments() const {
    const float* w = weights.buffer.data();
    const AxialPassParameters pass{
        contiguous_view<const float, 1>(w, {D}), contiguous_view<const float, 1>(w + D, {D}),
        contiguous_view<const float, 2>(w, {3 * D, D}), contiguous_view<const float, 2>(w + D, {D, D}),
        contiguous_view<const float, 1>(w + 2 * D, {D})};
    gpu::AxialArguments arguments;
    arguments.x = x.view<const float>();
    arguments.row = arguments.col = pass;
    arguments.heads = heads;
    arguments.passes = AxialPasses::row;
    arguments.y = y.view<float>();
    return arguments;
  }
  void reset() { y.buffer.fill_marked(); }
  std::vector<float> results(Index b) const { return y.batch(b); }
};

/// Runs every kernel on the whole and on its first and last batch alone. The number of kernels that fail.
template <class Problem, class Kernels>
int compare(gpu::Device& device, Problem& whole, Index batches, Index elements, const Kernels& kernels) {
  int failed = 0;
  for (const auto& kernel : kernels) {
    const auto arguments = whole.arguments();
    std::string outcome;
    try {
      if (const auto reason = kernel.declines(arguments)) {
        outcome = "declined: " + *reason;
      } else {
        whole.reset();
        gpu::LaunchContext context(device);
        kernel.run(arguments, context);
        device.synchronize();
        const bool exactly = same_bits_alone(kernel);
        const std::string expected = exactly ? "same bits" : "same values";
        outcome = expected;
        for (const Index b : {Index{0}, batches - 1}) {
          Problem alone(device, whole, b);
          alone.reset();
          kernel.run(alone.arguments(), context);
          device.synchronize();
          const std::vector<float> part = whole.results(b), one = alone.results(0);
          if (exactly ? !same_bits(part, one) : !(distance(part, one) <= 1e-4F))
            outcome = "OTHER RESULTS in batch " + std::to_string(b);
          for (const float value : part)
            if (!(value - value == 0)) outcome = "NOT FINITE in batch " + std::to_string(b);
        }
        if (outcome != expected) ++failed;
      }
    } catch (const gpu::Declined& reason) {
      outcome = std::string("declined: ") + reason.what();
    } catch (const std::exception& failure) {
      outcome = std::string("FAILED: ") + failure.what();
      ++failed;
    }
    std::printf("%-32s %lld elements: %s\n", kernel.name.c_str(), static_cast<long long>(elements),
                outcome.c_str());
    std::fflush(stdout);
  }
  return failed;
}

}  // namespace

int main() {
  std::unique_ptr<gpu::Device> device;
  try {
    device = gpu::open_cuda_device();
  } catch (const gpu::NoDevice& reason) {
    std::printf("not run: %s\n", reason.what());
    return 77;
  }
  if (device->facts().memory_bytes < needed_bytes) {
    std::printf("not run: %s has %.0f GB, %.0f GB are needed\n", device->facts().name.c_str(),
                1e-9 * static_cast<double>(device->facts().memory_bytes),
                1e-9 * static_cast<double>(needed_bytes));
    return 77;
  }
  int failed = 0;
  {
    // Rows of q, k, v and y that 16-byte accesses can take.
    constexpr Index B = (Index{1} << 21) + 1, T = 256, K = 4;
    Recurrence whole(*device, B, T, K, K);
    failed += compare(*device, whole, B, B * T * K, gpu::cuda_backend::recurrence_kernels());
  }
  {
    // gate and beta pass 2^31 elements as well.
    constexpr Index B = (Index{1} << 21) + 1, T = 1024;
    Recurrence whole(*device, B, T, 1, 1);
    failed += compare(*device, whole, B, B * T, gpu::cuda_backend::recurrence_kernels());
  }
  {
    constexpr Index B = (Index{1} << 24) + 1, W = 16;
    Axial whole(*device, B, W);
    failed += compare(*device, whole, B, B * W * Axial::D, gpu::cuda_backend::axial_kernels());
  }
  std::printf("%d failed\n", failed);
  return failed == 0 ? 0 : 1;
}
