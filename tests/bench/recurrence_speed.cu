// Error and time of the recurrence kernels that are meant to be fast, on a GPU.
//
//     recurrence_speed [speed]   relative Frobenius error against float64, then the median time of graph
//     replays recurrence_speed repeat    200 runs each, which must give the same bits recurrence_speed small
//     small sizes of every path, once: for compute-sanitizer
//
// Inputs: q, k, v normal, gate = sigmoid(normal + 3), beta = sigmoid(normal). A timed replay rotates over as
// many input sets as pass the L2 cache together, where they fit. No kernel with an error above 5e-7 is timed.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gaugeblock/gpu/recurrence/chunked_split_half.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace {

namespace gpu = gaugeblock::gpu;
using gaugeblock::Index;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "recurrence_speed: %s\n", cudaGetErrorString(error));
  std::exit(3);
}

__device__ std::uint32_t hashed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(x ^ (x >> 33));
}

enum class Values { normal, open_gate, half_gate, any_gate, wide };

__global__ void fill(float* to, Index count, std::uint64_t seed, Values values) {
  for (Index i = blockIdx.x * Index{blockDim.x} + threadIdx.x; i < count;
       i += Index{gridDim.x} * blockDim.x) {
    const std::uint64_t key = seed * 0x9E3779B97F4A7C15ULL + 2 * i;
    const float u = (hashed(key) + 1.0F) / 4294967808.0F, w = hashed(key + 1) / 4294967296.0F;
    float x = sqrtf(-2 * logf(u)) * cospif(2 * w);
    if (values == Values::open_gate) x = 1 / (1 + expf(-x - 3));
    if (values == Values::half_gate) x = 1 / (1 + expf(-x));
    if (values == Values::any_gate)
      x = u < 0.03F ? 0.0F : u < 0.2F ? -4.5F * u : u < 0.3F ? 1.1F : 1 / (1 + expf(-x - 3));
    if (values == Values::wide && hashed(key + 77) % 300 == 0)
      x *= 0x1p30F;  // what split float16 cannot hold
    to[i] = x;
  }
}

struct Sizes {
  Index B, T, H, K, V;
  bool state;
};

struct Set {
  std::unique_ptr<gpu::DeviceBuffer> q, k, v, gate, beta, state, y, final_state, workspace;
  gpu::RecurrenceArguments arguments;
};

Set make_set(gpu::Device& device, const Sizes& s, std::uint64_t seed, Values gates, Values vectors) {
  Set set;
  const auto make = [&](Index count, Values values, const char* name) {
    auto buffer = std::make_unique<gpu::DeviceBuffer>(device, count, name);
    fill<<<1024, 256>>>(buffer->data(), count, ++seed, values);
    check(cudaGetLastError());
    return buffer;
  };
  set.q = make(s.B * s.T * s.H * s.K, vectors, "q");
  set.k = make(s.B * s.T * s.H * s.K, vectors, "k");
  set.v = make(s.B * s.T * s.H * s.V, vectors, "v");
  set.gate = make(s.B * s.T * s.H, gates, "gate");
  set.beta = make(s.B * s.T * s.H, Values::half_gate, "beta");
  set.state = make(s.B * s.H * s.K * s.V, Values::normal, "initial_state");
  set.y = std::make_unique<gpu::DeviceBuffer>(device, s.B * s.T * s.H * s.V, "y");
  set.final_state = std::make_unique<gpu::DeviceBuffer>(device, s.B * s.H * s.K * s.V, "final_state");
  auto& a = set.arguments;
  a.q = gaugeblock::contiguous_view<const float, 4>(set.q->data(), {s.B, s.T, s.H, s.K});
  a.k = gaugeblock::contiguous_view<const float, 4>(set.k->data(), {s.B, s.T, s.H, s.K});
  a.v = gaugeblock::contiguous_view<const float, 4>(set.v->data(), {s.B, s.T, s.H, s.V});
  a.gate = gaugeblock::contiguous_view<const float, 3>(set.gate->data(), {s.B, s.T, s.H});
  a.beta = gaugeblock::contiguous_view<const float, 3>(set.beta->data(), {s.B, s.T, s.H});
  if (s.state)
    a.initial_state = gaugeblock::contiguous_view<const float, 4>(set.state->data(), {s.B, s.H, s.K, s.V});
  a.y = gaugeblock::contiguous_view<float, 4>(set.y->data(), {s.B, s.T, s.H, s.V});
  a.final_state = gaugeblock::contiguous_view<float, 4>(set.final_state->data(), {s.B, s.H, s.K, s.V});
  set.workspace =
      std::make_unique<gpu::DeviceBuffer>(device, gpu::chunked_split_half_workspace_floats(a), "workspace");
  check(cudaDeviceSynchronize());
  return set;
}

/// The definition in float64, a warp per column of the state; adds up squared errors and squares:
/// sums[0], [1] of y, [2], [3] of the final state, [4] largest relative error of any row of y.
__global__ void compare(const float* q, const float* k, const float* v, const float* gate, const float* beta,
                        const float* state0, const float* y, const float* final_state, Sizes s, double* rows,
                        double* sums) {
  const Index column = (blockIdx.x * Index{blockDim.x} + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (column >= s.B * s.H * s.V) return;
  const Index j = column % s.V, h = column / s.V % s.H, b = column / s.V / s.H;
  double state[4] = {0, 0, 0, 0};
  for (int x = 0; x < 4; ++x)
    if (s.state && lane + 32 * x < s.K) state[x] = state0[((b * s.H + h) * s.K + lane + 32 * x) * s.V + j];
  double error2 = 0, value2 = 0;
  for (Index t = 0; t < s.T; ++t) {
    const Index th = (b * s.T + t) * s.H + h;
    const double g = gate[th], write = double(beta[th]) * v[th * s.V + j];
    double sum = 0;
    for (int x = 0; x < 4; ++x) {
      if (lane + 32 * x >= s.K) continue;
      state[x] = g * state[x] + k[th * s.K + lane + 32 * x] * write;
      sum += q[th * s.K + lane + 32 * x] * state[x];
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    const double error = double(y[th * s.V + j]) - sum;
    error2 += error * error;
    value2 += sum * sum;
    if (lane == 0 && rows != nullptr) {
      atomicAdd(rows + 2 * th, error * error);
      atomicAdd(rows + 2 * th + 1, sum * sum);
    }
  }
  double state_error2 = 0, state_value2 = 0;
  for (int x = 0; x < 4; ++x) {
    if (lane + 32 * x >= s.K) continue;
    const double error = final_state[((b * s.H + h) * s.K + lane + 32 * x) * s.V + j] - state[x];
    state_error2 += error * error;
    state_value2 += state[x] * state[x];
  }
  if (lane == 0) {
    atomicAdd(sums, error2);
    atomicAdd(sums + 1, value2);
  }
  atomicAdd(sums + 2, state_error2);
  atomicAdd(sums + 3, state_value2);
}

/// Prints the errors; false when y's is above 5e-7 or not a number.
bool errors_are_small(const Sizes& s, const Set& set, const std::string& name) {
  double *sums, *rows;
  check(cudaMalloc(&sums, 4 * sizeof(double)));
  check(cudaMemset(sums, 0, 4 * sizeof(double)));
  check(cudaMalloc(&rows, 2 * s.B * s.T * s.H * sizeof(double)));
  check(cudaMemset(rows, 0, 2 * s.B * s.T * s.H * sizeof(double)));
  const Index threads = s.B * s.H * s.V * 32;
  compare<<<static_cast<unsigned>((threads + 127) / 128), 128>>>(
      set.q->data(), set.k->data(), set.v->data(), set.gate->data(), set.beta->data(), set.state->data(),
      set.y->data(), set.final_state->data(), s, rows, sums);
  check(cudaGetLastError());
  double of[4];
  check(cudaMemcpy(of, sums, sizeof of, cudaMemcpyDeviceToHost));
  std::vector<double> row(static_cast<std::size_t>(2 * s.B * s.T * s.H));
  check(cudaMemcpy(row.data(), rows, row.size() * sizeof(double), cudaMemcpyDeviceToHost));
  double worst = 0;
  for (std::size_t i = 0; i < row.size(); i += 2) {
    const double relative = std::sqrt(row[i] / row[i + 1]);
    if (!(relative <= worst)) worst = relative;
  }
  const double y = std::sqrt(of[0] / of[1]), state = std::sqrt(of[2] / of[3]);
  const bool good = y <= 5e-7 && state <= 5e-7;
  std::printf("%-60s error y %.2e, worst row %.2e, final state %.2e%s\n", name.c_str(), y, worst, state,
              good ? "" : "  TOO LARGE");
  std::fflush(stdout);
  check(cudaFree(sums));
  check(cudaFree(rows));
  return good;
}

using Launch = void (*)(const Set&, gpu::LaunchContext&);

void launch_chunked(const Set& set, gpu::LaunchContext& context) {
  gpu::chunked_split_half_launch(set.arguments, set.workspace->data(), context);
}
void launch_tile(const Set& set, gpu::LaunchContext& context) {
  for (const gpu::RecurrenceKernel& kernel : gpu::cuda_backend::recurrence_kernels())
    if (kernel.name == "tile_masked_attention") kernel.run(set.arguments, context);
}

/// Median time of a launch among `launches` of one graph.
double median_us(const std::vector<Set>& sets, Launch launch, gpu::Device& device, int launches) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  gpu::LaunchContext context(device);
  context.stream = stream;
  context.wait = false;
  for (const Set& set : sets) launch(set, context);
  check(cudaStreamSynchronize(stream));
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) launch(sets[i % sets.size()], context);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&replay, graph, 0));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 23; ++i) {
    check(cudaEventRecord(begin, stream));
    check(cudaGraphLaunch(replay, stream));
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float ms;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(1e3F * ms / launches);
  }
  std::sort(times.begin(), times.end());
  check(cudaGraphExecDestroy(replay));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  return times[times.size() / 2];
}

std::string text(const Sizes& s) {
  char name[100];
  std::snprintf(name, sizeof name, "B%lld T%lld H%lld K%lld V%lld%s", static_cast<long long>(s.B),
                static_cast<long long>(s.T), static_cast<long long>(s.H), static_cast<long long>(s.K),
                static_cast<long long>(s.V), s.state ? " state" : "");
  return name;
}

/// `sets` > 0: times as well.
bool measure(gpu::Device& device, const Sizes& s, bool tile, int sets, int launches, Values gates) {
  std::vector<Set> all;
  for (int i = 0; i < std::max(sets, 1); ++i)
    all.push_back(make_set(device, s, 100 * i + 1, gates, Values::normal));
  const Launch launch = tile ? launch_tile : launch_chunked;
  gpu::LaunchContext context(device);
  launch(all[0], context);
  const std::string name = text(s) + (tile ? " tile_masked_attention" : " chunked_split_half") +
                           (gates == Values::any_gate ? ", any gates" : "");
  const bool good = errors_are_small(s, all[0], name);
  if (good && sets > 0) {
    const double first = median_us(all, launch, device, launches);
    std::printf("%-60s %.2f us, again %.2f us\n", name.c_str(), first,
                median_us(all, launch, device, launches));
    std::fflush(stdout);
  }
  return good;
}

bool repeats(gpu::Device& device, const Sizes& s, bool tile, int runs, Values vectors) {
  Set set = make_set(device, s, 5, Values::open_gate, vectors);
  const Launch launch = tile ? launch_tile : launch_chunked;
  gpu::LaunchContext context(device);
  const std::size_t bytes_y = 4 * static_cast<std::size_t>(set.y->count()),
                    bytes_s = 4 * static_cast<std::size_t>(set.final_state->count());
  std::vector<float> first_y(bytes_y / 4), first_s(bytes_s / 4), y(bytes_y / 4), state(bytes_s / 4);
  int different = 0;
  for (int i = 0; i < runs; ++i) {
    check(cudaMemset(set.y->data(), 0xFF, bytes_y));
    check(cudaMemset(set.final_state->data(), 0xFF, bytes_s));
    check(cudaMemset(set.workspace->data(), i, 4 * static_cast<std::size_t>(set.workspace->count())));
    launch(set, context);
    check(cudaMemcpy(y.data(), set.y->data(), bytes_y, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(state.data(), set.final_state->data(), bytes_s, cudaMemcpyDeviceToHost));
    if (i == 0) {
      first_y = y;
      first_s = state;
    }
    different += std::memcmp(first_y.data(), y.data(), bytes_y) != 0 ||
                 std::memcmp(first_s.data(), state.data(), bytes_s) != 0;
  }
  std::printf("%-60s %d runs, %d with other bits\n", (text(s) + (tile ? " tile" : " chunked")).c_str(), runs,
              different);
  std::fflush(stdout);
  return different == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "speed";
  const std::unique_ptr<gpu::Device> device = gpu::open_cuda_device();
  bool good = true;
  const auto all = [&](bool result) { good = result && good; };
  if (mode == "small") {
    for (const Values vectors : {Values::normal, Values::wide})
      for (const Sizes& s :
           {Sizes{1, 70, 2, 24, 40, true}, Sizes{1, 300, 1, 100, 128, true}, Sizes{1, 257, 1, 64, 64, false},
            Sizes{1, 0, 1, 8, 8, true}, Sizes{2, 33, 1, 5, 7, false}}) {
        all(repeats(*device, s, false, 1, vectors));
        all(repeats(*device, s, true, 1, vectors));
      }
  } else if (mode == "repeat") {
    all(repeats(*device, {2, 128, 4, 24, 24, true}, true, 200, Values::normal));
    all(repeats(*device, {2, 2048, 16, 64, 64, true}, false, 200, Values::normal));
    all(repeats(*device, {1, 4000, 16, 128, 128, true}, false, 200, Values::normal));
    all(repeats(*device, {1, 300, 3, 33, 100, true}, false, 200, Values::wide));
  } else {
    for (const Values gates : {Values::open_gate, Values::any_gate}) {
      all(measure(*device, {1, 300, 2, 24, 40, true}, true, 0, 0, gates));
      all(measure(*device, {1, 300, 2, 100, 128, true}, true, 0, 0, gates));
      all(measure(*device, {1, 64, 2, 64, 64, false}, false, 0, 0, gates));
      all(measure(*device, {1, 128, 2, 64, 64, false}, false, 0, 0, gates));
      all(measure(*device, {2, 1000, 2, 64, 64, true}, false, 0, 0, gates));
      all(measure(*device, {2, 1000, 2, 33, 45, true}, false, 0, 0, gates));
      all(measure(*device, {1, 130, 2, 128, 128, true}, false, 0, 0, gates));
      all(measure(*device, {2, 3000, 2, 128, 128, true}, false, 0, 0, gates));
      all(measure(*device, {2, 3000, 20, 128, 128, true}, false, 0, 0, gates));
    }
    all(measure(*device, {2, 128, 4, 24, 24, false}, true, 8, 64, Values::open_gate));
    all(measure(*device, {2, 2048, 16, 64, 64, false}, false, 3, 12, Values::open_gate));
    all(measure(*device, {4, 4096, 16, 128, 128, false}, false, 1, 4, Values::open_gate));
    all(measure(*device, {1, 65536, 16, 128, 128, false}, false, 1, 2, Values::open_gate));
    if (mode == "scaling") {
      for (Index T = 1024; T <= 65536; T *= 4)
        all(measure(*device, {1, T, 16, 128, 128, false}, false, 1, 4, Values::open_gate));
      for (Index H = 4; H <= 64; H *= 4)
        all(measure(*device, {2, 128, H, 24, 24, false}, true, 1, 64, Values::open_gate));
    }
  }
  return good ? 0 : 1;
}
