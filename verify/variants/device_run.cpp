#include "gaugeblock/verify/variants/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gaugeblock/gpu/runtime/errors.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {

DeviceTensors::DeviceTensors(gpu::Device& device, const Problem& problem, const Outputs& outputs)
    : problem_(problem), outputs_(outputs) {
  for (const auto& [name, tensor] : problem.inputs) place(device, name, tensor, false);
  for (const auto& [name, tensor] : outputs) place(device, name, tensor, true);
}

void DeviceTensors::place(gpu::Device& device, const std::string& name, const Tensor& tensor,
                          bool is_output) {
  Index low = 0;
  Index high = -1;  // an empty tensor reaches nothing
  if (tensor.size() > 0) {
    high = 0;
    for (int d = 0; d < tensor.rank(); ++d) {
      const Index reach = (tensor.shape[d] - 1) * tensor.stride[d];
      low += std::min<Index>(reach, 0);
      high += std::max<Index>(reach, 0);
    }
  }
  const Index count = high - low + 1;
  const Index first = tensor.offset + low;
  constexpr Index alignment_elems = 64;  // 256 bytes
  const Index behind_alignment = first % alignment_elems;
  gpu::DeviceBuffer buffer =
      is_output ? gpu::DeviceBuffer(device, count, name, behind_alignment)
                : gpu::DeviceBuffer(device, tensor.buffer.data() + first, count, name, behind_alignment);
  placed_.emplace(name, Placed{std::move(buffer), first, -low});
}

void DeviceTensors::finish(Outputs& outputs) const {
  std::vector<float> now;
  for (const auto& [name, placed] : placed_) {
    if (const std::optional<std::string> damage = placed.buffer.guard_damage(now))
      throw RunPropertyBroken(fmt::format("{}: {}", name, *damage));
    const auto output = outputs.find(name);
    if (output != outputs.end()) {
      std::copy(now.begin(), now.end(), output->second.buffer.begin() + placed.first);
      continue;
    }
    const Tensor& before = problem_.input(name);
    for (Index e = 0; e < placed.buffer.count(); ++e)
      if (!same_bits(now[e], before.buffer[placed.first + e]))
        throw RunPropertyBroken(fmt::format(
            "the input {} was changed on the device, {} elements behind its start", name, e - placed.offset));
  }
}

void run_on_device(gpu::Device& device, const simt::Options& options, const Problem& problem,
                   Outputs& outputs,
                   const std::function<void(const DeviceTensors&, gpu::LaunchContext&)>& kernel) {
  const DeviceTensors tensors(device, problem, outputs);
  gpu::LaunchContext context(device);
  context.simt = options;
  try {
    kernel(tensors, context);
    device.synchronize();
  } catch (const gpu::Declined& reason) {
    throw NothingToJudge(reason.what());
  } catch (const gpu::DeviceError&) {
    if (context.reports().empty()) throw;  // a GPU says no more than this
  }
  if (const std::vector<simt::Report> reports = context.reports(); !reports.empty())
    throw RunPropertyBroken("interpreter: " + reports.front().text() +
                            (reports.size() > 1 ? fmt::format(" (and {} more)", reports.size() - 1) : ""));
  tensors.finish(outputs);
}

gpu::Device& cuda_device() {
  static const std::unique_ptr<gpu::Device> device = [] {
    try {
      return gpu::open_cuda_device();
    } catch (const gpu::NoDevice& reason) {
      throw DeviceFailure(fmt::format("backend cuda: {}", reason.what()));
    }
  }();
  return *device;
}

bool device_is_lost(const std::string& backend) {
  if (backend != "cuda") return false;
  try {
    cuda_device().synchronize();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace gaugeblock
