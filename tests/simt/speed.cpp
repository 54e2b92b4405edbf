// How fast the interpreter is: lane-steps per second (one lane, one time step) of two small kernels, with and
// without tracking. Prints; judges nothing, since the figure is the machine's as much as ours.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "gaugeblock/gpu/runtime/device_buffer.h"
#include "gaugeblock/gpu/runtime/launch.h"

namespace {

namespace gpu = gaugeblock::gpu;
namespace simt = gaugeblock::simt;

// Processor time, not elapsed time: other programs on the machine do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// S_t[i] = a_t S[i] + k_t[i] v_t[j], y_t[j] = sum_i q_t[i] S[i]: a warp for each (b,h,j), lane i.
__global__ void gated_shuffle(const float* q_, const float* k_, const float* v_, const float* a_, float* y_,
                              int T, int H, int D) {
  const simt::Global<const float> q(q_), k(k_), v(v_), a(a_);
  const simt::Global<float> y(y_);
  const int lane = static_cast<int>(threadIdx.x), j = static_cast<int>(blockIdx.x) % D;
  const int bh = static_cast<int>(blockIdx.x) / D, h = bh % H, b = bh / H;
  float state = 0;
  for (int t = 0; t < T; ++t) {
    const int step = (b * T + t) * H + h, base = step * D;
    float qi = 0, ki = 0;
    if (lane < D) {
      qi = q[base + lane];
      ki = k[base + lane];
    }
    state = a[step] * state + ki * v[base + j];
    float sum = qi * state;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffU, sum, offset);
    if (lane == 0) y[base + j] = sum;
  }
}

// The same with a tree in shared memory: a barrier a level.
__global__ void gated_tree(const float* q_, const float* k_, const float* v_, const float* a_, float* y_,
                           int T, int H, int D) {
  const simt::Global<const float> q(q_), k(k_), v(v_), a(a_);
  const simt::Global<float> y(y_);
  GAUGEBLOCK_DYNAMIC_SHARED(float, tree);
  const int i = static_cast<int>(threadIdx.x), j = static_cast<int>(blockIdx.x) % D;
  const int bh = static_cast<int>(blockIdx.x) / D, h = bh % H, b = bh / H;
  float state = 0;
  for (int t = 0; t < T; ++t) {
    const int step = (b * T + t) * H + h, base = step * D;
    float qi = 0, ki = 0;
    if (i < D) {
      qi = q[base + i];
      ki = k[base + i];
    }
    state = a[step] * state + ki * v[base + j];
    tree[i] = qi * state;
    __syncthreads();  // the leaves are written
    for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
      if (i < half) tree[i] += tree[i + half];
      __syncthreads();  // this level is written before the next reads it
    }
    if (i == 0) y[base + j] = tree[0];
    __syncthreads();  // the sum is read before the next step writes leaves
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 5;
  const int B = 2, T = 128, H = 4, D = 24;
  gpu::Device& device = gpu::simt_device();
  const auto filled = [&](std::int64_t count, const char* name) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000;
    gpu::DeviceBuffer buffer(device, count, name);
    buffer.upload(values);
    return buffer;
  };
  const auto q = filled(B * T * H * D, "q"), k = filled(B * T * H * D, "k"), v = filled(B * T * H * D, "v");
  const auto a = filled(B * T * H, "a");
  const gpu::DeviceBuffer y(device, B * T * H * D, "y");

  for (const bool tree : {false, true}) {
    double rate[2];
    for (const bool tracking : {false, true}) {
      double best_seconds = 1e9;
      for (int repetition = 0; repetition < repetitions; ++repetition) {
        gpu::LaunchContext context(device);
        context.simt.tracking = tracking;
        const double begin = cpu_seconds();
        gpu::launch(tree ? GAUGEBLOCK_KERNEL(gated_tree) : GAUGEBLOCK_KERNEL(gated_shuffle), dim3(B * H * D),
                    dim3(tree ? 64 : 32), tree ? 64 * sizeof(float) : 0, context, q.data(), k.data(),
                    v.data(), a.data(), y.data(), T, H, D);
        const double seconds = cpu_seconds() - begin;
        if (seconds < best_seconds) best_seconds = seconds;
        for (const auto& report : context.reports()) std::printf("%s\n", report.text().c_str());
        if (tracking && repetition == 0)
          for (const auto& line : context.launches[0].lines)
            if (line.space != simt::Space::none)
              std::printf("  %s:%d %s %s: %.2f %s a request\n", line.at.file.c_str(), line.at.line,
                          line.space == simt::Space::shared ? "shared" : "global",
                          line.access == simt::Access::load ? "load" : "store",
                          static_cast<double>(line.units) / static_cast<double>(line.requests),
                          line.space == simt::Space::shared ? "wavefronts" : "sectors");
      }
      rate[tracking] = static_cast<double>(B) * H * D * T * (tree ? 64 : 32) / best_seconds / 1e6;
    }
    std::printf("%s: %.2f million lane-steps/s without tracking, %.2f with (%.2f times as long)\n",
                tree ? "tree" : "shuffle", rate[0], rate[1], rate[0] / rate[1]);
  }
  return 0;
}
