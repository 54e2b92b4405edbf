// A caller's memory as a device to allocate from: what lets a kernel's run() be captured, or serve another
// program.
#pragma once

#include <cstddef>
#include <vector>

#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

/// Hands out parts of a block of device memory, without a call to CUDA. Buffers come and go on one stream, so
/// that a part can be used again as soon as it is released. Whatever would make the host wait throws
/// DeviceError.
class CallersWorkspace final : public Device {
 public:
  /// Counts only: addresses are not to be used (LaunchContext::dry).
  CallersWorkspace() = default;
  /// `memory` is aligned to 256 bytes.
  CallersWorkspace(void* memory, std::size_t bytes) : memory_(static_cast<char*>(memory)), bytes_(bytes) {}

  std::size_t most_used_bytes() const { return most_used_; }

  const char* backend() const override { return "cuda"; }
  DeviceFacts facts() const override { return {}; }
  void* allocate(const std::string& name, std::size_t bytes, std::size_t payload_offset,
                 std::size_t payload_bytes) override;
  void release(void* memory) noexcept override;
  void upload(void*, const void*, std::size_t) override;
  void download(void*, const void*, std::size_t) override;
  /// The marked NaNs of a new buffer serve checks; here nothing checks.
  void fill(void*, std::uint32_t, std::size_t) override {}
  void synchronize() override;

 private:
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t most_used_ = 0;
  std::vector<std::size_t> ends_;  // of the parts in use, from the start
};

}  // namespace gaugeblock::gpu
