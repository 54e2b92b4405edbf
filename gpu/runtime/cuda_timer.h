// Streams and event timing of the CUDA backend. Only in builds with CUDA.
#pragma once

#include <functional>
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

/// Launches captured once and replayed as often as wanted, with no host in between.
class CudaGraph {
 public:
  /// `enqueue` launches on the stream it is given. Throws DeviceError when it does what a graph cannot hold:
  /// wait, copy to or from the host, allocate.
  explicit CudaGraph(const std::function<void(void* stream)>& enqueue);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  /// Microseconds of one replay, measured on the device.
  double replay_us();

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace gaugeblock::gpu
