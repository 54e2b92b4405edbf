// Brings a problem onto a device, runs a kernel there, and brings the outputs back.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/device.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"
#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {

/// Where the tensors of a problem lie on a device.
enum class Placement {
  apart,    ///< each in memory of its own, which the interpreter and memory checkers know by its bounds
  together  ///< in one block with guard bands between them, so that all come and go in one copy each
};

/// Device copies of a problem's tensors, each with the same strides and the same alignment within 256 bytes
/// as on the host; what lies between the elements of a view holds the marked NaN, as on the host.
class DeviceTensors {
 public:
  DeviceTensors(gpu::Device& device, const Problem& problem, const Outputs& outputs,
                Placement placement = Placement::apart);

  /// The view of an input or output on the device.
  template <int Rank>
  TensorView<const float, Rank> input(const std::string& name) const {
    TensorView<const float, Rank> view = problem_.input(name).template view<Rank>();
    view.data = placed_.at(name).address();
    return view;
  }
  template <int Rank>
  TensorView<float, Rank> output(const std::string& name) const {
    const auto view = outputs_.at(name).template view<Rank>();
    return {placed_.at(name).address(), view.shape, view.stride};
  }
  bool has(const std::string& name) const { return placed_.contains(name); }
  const Attributes& attributes() const { return problem_.attributes; }

  /// Copies the outputs back. Throws RunPropertyBroken when a guard band on the device is damaged or an input
  /// was changed there.
  void finish(Outputs& outputs) const;

 private:
  struct Placed {
    Index first = 0;   ///< lowest element the view reaches, as a position in the host's buffer
    Index count = 0;   ///< from there to the highest
    Index offset = 0;  ///< of the view's first element behind `first`
    std::optional<gpu::DeviceBuffer> own;  ///< where the tensors lie apart
    Index at = 0;                          ///< of `first` in block_, where they lie together
    float* data = nullptr;                 ///< of `first`
    float* address() const { return data + offset; }
  };
  void place_apart(gpu::Device& device);
  void place_together(gpu::Device& device);
  /// The tensors' elements now. Throws RunPropertyBroken when a guard band is damaged.
  std::map<std::string, std::vector<float>> download() const;
  const Tensor& host(const std::string& name) const;

  const Problem& problem_;
  const Outputs& outputs_;
  std::map<std::string, Placed> placed_;
  std::optional<gpu::DeviceBuffer> block_;
};

/// Runs `kernel` with a fresh context of the device, and waits for all of it; with `wait`, for each launch by
/// itself. Throws RunPropertyBroken with the interpreter's reports.
void run_on_device(gpu::Device& device, const simt::Options& options, const Problem& problem,
                   Outputs& outputs,
                   const std::function<void(const DeviceTensors&, gpu::LaunchContext&)>& kernel,
                   Placement placement = Placement::apart, bool wait = true);

/// The GPU this process uses, opened once. Throws DeviceFailure, with one line, when there is none.
gpu::Device& cuda_device();

/// Whether an error has left the device of this backend unusable for the rest of the process.
bool device_is_lost(const std::string& backend);

}  // namespace gaugeblock
