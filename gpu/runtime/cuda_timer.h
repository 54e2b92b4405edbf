// Streams and event timing of the CUDA backend. Only in builds with CUDA.
#pragma once

#include <memory>

#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

/// An owned stream; give `get()` to LaunchContext::stream.
class CudaStream {
 public:
  CudaStream();
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  void* get() const { return stream_; }

 private:
  void* stream_ = nullptr;
};

/// Time between two points of a stream, measured on the device.
class CudaTimer {
 public:
  CudaTimer();
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;
  void start(const LaunchContext& context);
  /// Microseconds since start(); waits for the work in between.
  double stop_us(const LaunchContext& context);

 private:
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace gaugeblock::gpu
