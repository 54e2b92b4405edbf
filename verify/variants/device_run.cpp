#include "gaugeblock/verify/variants/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "gaugeblock/gpu/runtime/errors.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {

namespace {

constexpr Index alignment_elems = 64;  // 256 bytes

}  // namespace

DeviceTensors::DeviceTensors(gpu::Device& device, const Problem& problem, const Outputs& outputs,
                             Placement placement)
    : problem_(problem), outputs_(outputs) {
  const auto measure = [this](const std::string& name, const Tensor& tensor) {
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
    Placed& placed = placed_[name];
    placed.first = tensor.offset + low;
    placed.count = high - low + 1;
    placed.offset = -low;
  };
  for (const auto& [name, tensor] : problem.inputs) measure(name, tensor);
  for (const auto& [name, tensor] : outputs) measure(name, tensor);
  if (placement == Placement::apart)
    place_apart(device);
  else
    place_together(device);
}

const Tensor& DeviceTensors::host(const std::string& name) const {
  const auto output = outputs_.find(name);
  return output != outputs_.end() ? output->second : problem_.input(name);
}

void DeviceTensors::place_apart(gpu::Device& device) {
  for (auto& [name, placed] : placed_) {
    const Index behind_alignment = placed.first % alignment_elems;
    if (outputs_.contains(name))
      placed.own.emplace(device, placed.count, name, behind_alignment);
    else
      placed.own.emplace(device, host(name).buffer.data() + placed.first, placed.count, name,
                         behind_alignment);
    placed.data = placed.own->data();
  }
}

void DeviceTensors::place_together(gpu::Device& device) {
  Index end = 0;
  for (auto& [name, placed] : placed_) {
    placed.at =
        (end + alignment_elems - 1) / alignment_elems * alignment_elems + placed.first % alignment_elems;
    end = placed.at + placed.count + gpu::guard_words;
  }
  std::vector<float> image(static_cast<std::size_t>(end), std::bit_cast<float>(gpu::marked_nan_bits));
  for (const auto& [name, placed] : placed_)
    if (!outputs_.contains(name))
      std::copy_n(host(name).buffer.begin() + placed.first, placed.count, image.begin() + placed.at);
  block_.emplace(device, image.data(), end, "tensors");
  for (auto& [name, placed] : placed_) placed.data = block_->data() + placed.at;
}

std::map<std::string, std::vector<float>> DeviceTensors::download() const {
  std::map<std::string, std::vector<float>> now;
  const auto require_intact = [](const std::string& name, const std::optional<std::string>& damage) {
    if (damage) throw RunPropertyBroken(fmt::format("{}: {}", name, *damage));
  };
  if (!block_) {
    for (const auto& [name, placed] : placed_) require_intact(name, placed.own->guard_damage(now[name]));
    return now;
  }
  std::vector<float> image;
  require_intact("tensors", block_->guard_damage(image));
  Index end = 0;  // of the tensor before, in the order in which they lie
  const auto require_guards = [&](const std::string& name, const Placed& placed, Index to) {
    for (; end < to; ++end)
      if (std::bit_cast<std::uint32_t>(image[end]) != gpu::marked_nan_bits)
        require_intact(name, fmt::format("the guard band of '{}' was overwritten at element {} of {}", name,
                                         end - placed.at, placed.count));
  };
  for (const auto& [name, placed] : placed_) {
    require_guards(name, placed, placed.at);
    const auto begin = image.begin() + placed.at;
    now[name].assign(begin, begin + placed.count);
    end = placed.at + placed.count;
    require_guards(name, placed, end + gpu::guard_words);
  }
  return now;
}

void DeviceTensors::finish(Outputs& outputs) const {
  for (const auto& [name, now] : download()) {
    const Placed& placed = placed_.at(name);
    const auto output = outputs.find(name);
    if (output != outputs.end()) {
      std::copy(now.begin(), now.end(), output->second.buffer.begin() + placed.first);
      continue;
    }
    const Tensor& before = problem_.input(name);
    for (Index e = 0; e < placed.count; ++e)
      if (!same_bits(now[e], before.buffer[placed.first + e]))
        throw RunPropertyBroken(fmt::format(
            "the input {} was changed on the device, {} elements behind its start", name, e - placed.offset));
  }
}

void run_on_device(gpu::Device& device, const simt::Options& options, const Problem& problem,
                   Outputs& outputs,
                   const std::function<void(const DeviceTensors&, gpu::LaunchContext&)>& kernel,
                   Placement placement, bool wait) {
  const DeviceTensors tensors(device, problem, outputs, placement);
  gpu::LaunchContext context(device);
  context.wait = wait;
  context.simt = options;
  try {
    kernel(tensors, context);
    device.synchronize();
  } catch (const gpu::Declined& reason) {
    throw NothingToJudge(reason.what());
  } catch (const gpu::DeviceError& failure) {
    if (context.reports().empty())  // a GPU says no more than this
      throw gpu::DeviceError(
          failure.what() +
          std::string(wait ? "" : " (launches were not waited for one by one: any of them may have failed)"));
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
