// A device, whichever backend it belongs to: memory, copies, and the state of launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/errors.h"
#include "gaugeblock/gpu/simt/interpreter.h"
#include "gaugeblock/gpu/simt/report.h"

namespace gaugeblock::gpu {

struct DeviceFacts {
  std::string name;          ///< "NVIDIA H200"; "interpreter"
  std::string architecture;  ///< "sm_90"; "cpu"
  std::string driver;        ///< version of the driver's CUDA; empty for the interpreter
  std::string compiler;      ///< that built the kernels
  int multiprocessors = 1;
  std::uint64_t memory_bytes = 0;  ///< 0: not known
};

/// One device. Not to be shared between host threads, except the interpreter's, which holds no state.
class Device {
 public:
  virtual ~Device() = default;

  virtual const char* backend() const = 0;  ///< "simt", "cuda"
  virtual DeviceFacts facts() const = 0;

  /// Memory whose bytes `payload_offset` to `payload_offset + payload_bytes` kernels may touch. Aligned to
  /// 256 bytes.
  virtual void* allocate(const std::string& name, std::size_t bytes, std::size_t payload_offset,
                         std::size_t payload_bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  /// Sets 4-byte words without counting as an upload: reading them is still reading what nothing wrote.
  virtual void fill(void* to, std::uint32_t word, std::size_t words) = 0;
  /// Waits for all work; throws DeviceError when some of it failed.
  virtual void synchronize() = 0;
};

/// The interpreter as a device.
Device& simt_device();

/// The GPU with this number. Throws NoDevice, with one line that says why, when it cannot be used.
std::unique_ptr<Device> open_cuda_device(int number = 0);

/// The architecture of the GPU that is current on this thread, as in DeviceFacts; empty where there is none.
std::string current_cuda_architecture();

/// Why a kernel made for the architecture `needed` alone (empty: for any) does not run on `found` (empty: not
/// known, which rules nothing out), or nothing.
inline std::optional<std::string> declines_architecture(const std::string& needed, const std::string& found) {
  if (needed.empty() || found.empty() || needed == found) return std::nullopt;
  return "it is made of instructions of " + needed + " alone, the GPU is " + found;
}

/// Where and how kernels are launched, and what their launches left behind.
struct LaunchContext {
  explicit LaunchContext(Device& device_) : device(&device_) {}

  Device* device;
  void* stream = nullptr;  ///< cuda: a cudaStream_t
  bool wait = true;        ///< cuda: wait for each launch and report its errors at once; off: they overlap
  bool dry = false;        ///< cuda: check each launch, and start none
  simt::Options simt;      ///< simt: how to interpret
  std::vector<simt::LaunchRecord> launches;  ///< simt: one record a launch, in order

  /// All faults of all launches.
  std::vector<simt::Report> reports() const {
    std::vector<simt::Report> all;
    for (const simt::LaunchRecord& launch : launches)
      all.insert(all.end(), launch.reports.begin(), launch.reports.end());
    return all;
  }
};

}  // namespace gaugeblock::gpu
