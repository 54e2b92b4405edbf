// The CUDA backend: a GPU as a device, and launches on it.
#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/cuda_timer.h"
#include "gaugeblock/gpu/runtime/launch.h"

namespace gaugeblock::gpu {
namespace {

void check(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess)
    throw DeviceError(what + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string architecture_text(int major, int minor) {
  return "sm_" + std::to_string(10 * major + minor);
}

__global__ void fill_words(std::uint32_t* to, std::uint32_t word, std::size_t words) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += stride)
    to[i] = word;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) : number_(number) {
    check(cudaSetDevice(number), "cudaSetDevice");
    // A campaign allocates thousands of small buffers a second: what is freed stays with the driver's pool.
    cudaMemPool_t pool{};
    check(cudaDeviceGetDefaultMemPool(&pool, number), "cudaDeviceGetDefaultMemPool");
    std::uint64_t keep_bytes = std::uint64_t{1} << 30;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_bytes),
          "cudaMemPoolSetAttribute");
  }

  const char* backend() const override { return "cuda"; }

  DeviceFacts facts() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number_), "cudaGetDeviceProperties");
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    DeviceFacts facts;
    facts.name = properties.name;
    facts.architecture = architecture_text(properties.major, properties.minor);
    facts.driver = version_text(driver);
    facts.compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                     std::to_string(__CUDACC_VER_MINOR__) + "." + std::to_string(__CUDACC_VER_BUILD__);
    facts.multiprocessors = properties.multiProcessorCount;
    facts.memory_bytes = properties.totalGlobalMem;
    return facts;
  }

  void* allocate(const std::string& name, std::size_t bytes, std::size_t, std::size_t) override {
    void* memory = nullptr;  // aligned to 256 bytes
    check(cudaMallocAsync(&memory, bytes, nullptr),
          "no memory for buffer '" + name + "' of " + std::to_string(bytes) + " bytes");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFreeAsync(memory, nullptr); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "upload");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
  }
  void fill(void* to, std::uint32_t word, std::size_t words) override {
    if (words == 0) return;
    const std::size_t blocks = (words + 255) / 256;
    fill_words<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), 256>>>(static_cast<std::uint32_t*>(to),
                                                                              word, words);
    check(cudaGetLastError(), "fill");
  }
  void synchronize() override { check(cudaStreamSynchronize(nullptr), "synchronize"); }

 private:
  int number_;
};

}  // namespace

std::string current_cuda_architecture() {
  int number = 0;
  int major = 0;
  int minor = 0;
  if (cudaGetDevice(&number) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number) != cudaSuccess) {
    cudaGetLastError();  // no GPU is an answer here: nobody is to find its error later
    return "";
  }
  return architecture_text(major, minor);
}

std::unique_ptr<Device> open_cuda_device(int number) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) throw NoDevice(std::string("no CUDA device: ") + cudaGetErrorString(error));
  if (number < 0 || number >= count)
    throw NoDevice("no CUDA device " + std::to_string(number) + ": the driver sees " + std::to_string(count));
  return std::make_unique<CudaDevice>(number);
}

void launch_on_cuda(const char* name, const void* function, const simt::LaunchShape& shape, Begin begin,
                    LaunchContext& context, void** arguments) {
  const std::string what = std::string("launch of ") + name;
  int device = 0;
  check(cudaGetDevice(&device), what);
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, function), what);
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), what);
    return static_cast<std::uint64_t>(value);
  };
  simt::LaunchLimits limits;
  limits.threads = static_cast<std::uint64_t>(attributes.maxThreadsPerBlock);  // registers count too
  limits.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
  limits.shared_opt_in_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  limits.grid = {attribute(cudaDevAttrMaxGridDimX), attribute(cudaDevAttrMaxGridDimY),
                 attribute(cudaDevAttrMaxGridDimZ)};
  simt::LaunchShape opted = shape;
  opted.shared_opt_in = true;
  if (const auto reason = simt::refusal(opted, attributes.sharedSizeBytes, limits))
    throw LaunchRefused(what + " refused: " + *reason);
  if (context.dry) return;
  if (shape.dynamic_shared_bytes + attributes.sharedSizeBytes > limits.shared_bytes)
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.dynamic_shared_bytes)),
          what);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid[0], shape.grid[1], shape.grid[2]);
  config.blockDim = dim3(shape.block[0], shape.block[1], shape.block[2]);
  config.dynamicSmemBytes = shape.dynamic_shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.stream);
  cudaLaunchAttribute while_it_ends{};
  while_it_ends.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  while_it_ends.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &while_it_ends;
  config.numAttrs = begin == Begin::while_it_ends ? 1 : 0;
  check(cudaLaunchKernelExC(&config, function, arguments), what);
  check(cudaGetLastError(), what);
  if (context.wait) check(cudaStreamSynchronize(config.stream), std::string(name) + " failed");
}

struct CudaTimer::Events {
  cudaEvent_t begin{}, end{};
};

CudaTimer::CudaTimer() : events_(std::make_unique<Events>()) {
  check(cudaEventCreate(&events_->begin), "cudaEventCreate");
  check(cudaEventCreate(&events_->end), "cudaEventCreate");
}
CudaTimer::~CudaTimer() {
  cudaEventDestroy(events_->begin);
  cudaEventDestroy(events_->end);
}
void CudaTimer::start(const LaunchContext& context) {
  check(cudaEventRecord(events_->begin, static_cast<cudaStream_t>(context.stream)), "cudaEventRecord");
}
double CudaTimer::stop_us(const LaunchContext& context) {
  check(cudaEventRecord(events_->end, static_cast<cudaStream_t>(context.stream)), "cudaEventRecord");
  check(cudaEventSynchronize(events_->end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, events_->begin, events_->end), "cudaEventElapsedTime");
  return 1e3 * milliseconds;
}

CudaStream::CudaStream() {
  check(cudaStreamCreate(reinterpret_cast<cudaStream_t*>(&stream_)), "cudaStreamCreate");
}
CudaStream::~CudaStream() {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

struct CudaGraph::Handles {
  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t replayed{};
  cudaEvent_t begin{}, end{};
  ~Handles() {
    if (end) cudaEventDestroy(end);
    if (begin) cudaEventDestroy(begin);
    if (replayed) cudaGraphExecDestroy(replayed);
    if (graph) cudaGraphDestroy(graph);
    if (stream) cudaStreamDestroy(stream);
  }
};

CudaGraph::CudaGraph(const std::function<void(void* stream)>& enqueue)
    : handles_(std::make_unique<Handles>()) {
  Handles& h = *handles_;
  check(cudaStreamCreate(&h.stream), "cudaStreamCreate");
  check(cudaEventCreate(&h.begin), "cudaEventCreate");
  check(cudaEventCreate(&h.end), "cudaEventCreate");
  check(cudaStreamBeginCapture(h.stream, cudaStreamCaptureModeThreadLocal), "capture");
  try {
    enqueue(h.stream);
  } catch (...) {
    cudaStreamEndCapture(h.stream, &h.graph);
    cudaGetLastError();  // the capture's failure, which is about to be reported, must not meet the next call
    throw;
  }
  check(cudaStreamEndCapture(h.stream, &h.graph), "capture");
  check(cudaGraphInstantiate(&h.replayed, h.graph, 0), "cudaGraphInstantiate");
}

CudaGraph::~CudaGraph() = default;

double CudaGraph::replay_us() {
  Handles& h = *handles_;
  check(cudaEventRecord(h.begin, h.stream), "cudaEventRecord");
  check(cudaGraphLaunch(h.replayed, h.stream), "cudaGraphLaunch");
  check(cudaEventRecord(h.end, h.stream), "cudaEventRecord");
  check(cudaEventSynchronize(h.end), "replay");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, h.begin, h.end), "cudaEventElapsedTime");
  return 1e3 * milliseconds;
}

}  // namespace gaugeblock::gpu
