// Device memory with a guard band on either side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/device.h"

namespace gaugeblock::gpu {

/// A quiet NaN that no arithmetic makes: whoever finds it has read or kept memory that nothing wrote.
inline constexpr std::uint32_t marked_nan_bits = 0x7fc5a5a5;

/// Words of a guard band: wide enough that a tile's overhang or an index one row off lands in it. A multiple of
/// 256 bytes keeps the payload aligned.
inline constexpr std::int64_t guard_words = 256;

/// An owned array of `count` floats on a device. It and its guard bands start out as marked NaNs.
///
/// The payload is aligned to 256 bytes, plus `offset` elements: an offset of 1 makes a buffer that 8- and
/// 16-byte loads cannot take.
class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, std::int64_t count, std::string name, std::int64_t offset = 0);
  /// With these values, brought there with the guard bands in one copy.
  DeviceBuffer(Device& device, const float* values, std::int64_t count, std::string name,
               std::int64_t offset = 0);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  float* data() const { return data_; }
  std::int64_t count() const { return count_; }
  const std::string& name() const { return name_; }

  /// Copies elements `first` to `first + count - 1`. Throws std::out_of_range outside the payload.
  void upload(const float* from, std::int64_t count, std::int64_t first = 0);
  void download(float* to, std::int64_t count, std::int64_t first = 0) const;
  void upload(const std::vector<float>& from) { upload(from.data(), static_cast<std::int64_t>(from.size())); }
  std::vector<float> download() const;

  /// Makes every element a marked NaN again. To the interpreter they count as never written.
  void fill_marked();

  /// Which guard word was overwritten, in one sentence; nothing when both bands are intact.
  std::optional<std::string> guard_damage() const;
  /// The same, and the payload with the same copy.
  std::optional<std::string> guard_damage(std::vector<float>& payload) const;

 private:
  void allocate(std::int64_t offset);
  void free() noexcept;
  void check_range(std::int64_t first, std::int64_t count) const;

  Device* device_ = nullptr;
  std::string name_;
  std::int64_t count_ = 0;
  std::int64_t before_ = 0;  // guard words before the payload
  std::int64_t after_ = 0;
  float* whole_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace gaugeblock::gpu
