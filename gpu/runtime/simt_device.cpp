#include <cstdlib>
#include <cstring>
#include <new>

#include "gaugeblock/gpu/runtime/device.h"
#include "gaugeblock/gpu/simt/memory.h"

namespace gaugeblock::gpu {
namespace {

class SimtDevice final : public Device {
 public:
  const char* backend() const override { return "simt"; }

  DeviceFacts facts() const override {
    DeviceFacts facts;
    facts.name = "interpreter";
    facts.architecture = "cpu";
#if defined(__clang__)
    facts.compiler = "clang " __clang_version__;
#else
    facts.compiler = "gcc " __VERSION__;
#endif
    return facts;
  }

  void* allocate(const std::string& name, std::size_t bytes, std::size_t payload_offset,
                 std::size_t payload_bytes) override {
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
    if (memory == nullptr)
      throw DeviceError("no memory for buffer '" + name + "' of " + std::to_string(bytes) + " bytes");
    simt::add_region(name, memory, bytes, static_cast<unsigned char*>(memory) + payload_offset,
                     payload_bytes);
    return memory;
  }

  void release(void* memory) noexcept override {
    simt::remove_region(simt::find_region(memory));
    std::free(memory);
  }

  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    if (simt::Region* region = simt::find_region(to)) simt::mark_written(*region, to, bytes);
  }

  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  void fill(void* to, std::uint32_t word, std::size_t words) override {
    auto* at = static_cast<std::uint32_t*>(to);
    for (std::size_t i = 0; i < words; ++i) at[i] = word;
    if (simt::Region* region = simt::find_region(to)) simt::mark_unwritten(*region, to, 4 * words);
  }

  void synchronize() override {}
};

}  // namespace

Device& simt_device() {
  static SimtDevice device;
  return device;
}

}  // namespace gaugeblock::gpu
