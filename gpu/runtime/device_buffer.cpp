#include "gaugeblock/gpu/runtime/device_buffer.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace gaugeblock::gpu {

DeviceBuffer::DeviceBuffer(Device& device, std::int64_t count, std::string name, std::int64_t offset)
    : device_(&device), name_(std::move(name)), count_(count) {
  allocate(offset);
  device.fill(whole_, marked_nan_bits, static_cast<std::size_t>(before_ + count_ + after_));
}

DeviceBuffer::DeviceBuffer(Device& device, const float* values, std::int64_t count, std::string name,
                           std::int64_t offset)
    : device_(&device), name_(std::move(name)), count_(count) {
  allocate(offset);
  std::vector<float> image(static_cast<std::size_t>(before_ + count_ + after_),
                           std::bit_cast<float>(marked_nan_bits));
  std::copy_n(values, count, image.begin() + before_);
  device.upload(whole_, image.data(), 4 * image.size());
}

void DeviceBuffer::allocate(std::int64_t offset) {
  if (count_ < 0 || offset < 0) throw std::out_of_range("a buffer of negative size or offset");
  before_ = guard_words + offset;
  after_ = guard_words;
  whole_ = static_cast<float*>(
      device_->allocate(name_, 4 * static_cast<std::size_t>(before_ + count_ + after_),
                        4 * static_cast<std::size_t>(before_), 4 * static_cast<std::size_t>(count_)));
  data_ = whole_ + before_;
}

DeviceBuffer::~DeviceBuffer() {
  free();
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept {
  *this = std::move(other);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this == &other) return *this;
  free();
  device_ = other.device_;
  name_ = std::move(other.name_);
  count_ = other.count_;
  before_ = other.before_;
  after_ = other.after_;
  data_ = std::exchange(other.data_, nullptr);
  whole_ = std::exchange(other.whole_, nullptr);
  return *this;
}

void DeviceBuffer::free() noexcept {
  if (whole_ != nullptr) device_->release(whole_);
  whole_ = data_ = nullptr;
}

void DeviceBuffer::check_range(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > count_ - count)
    throw std::out_of_range(std::to_string(count) + " elements from " + std::to_string(first) +
                            " on of buffer '" + name_ + "', which has " + std::to_string(count_));
}

void DeviceBuffer::upload(const float* from, std::int64_t count, std::int64_t first) {
  check_range(first, count);
  if (count > 0) device_->upload(data_ + first, from, 4 * static_cast<std::size_t>(count));
}

void DeviceBuffer::download(float* to, std::int64_t count, std::int64_t first) const {
  check_range(first, count);
  if (count > 0) device_->download(to, data_ + first, 4 * static_cast<std::size_t>(count));
}

std::vector<float> DeviceBuffer::download() const {
  std::vector<float> all(static_cast<std::size_t>(count_));
  download(all.data(), count_);
  return all;
}

void DeviceBuffer::fill_marked() {
  if (count_ > 0) device_->fill(data_, marked_nan_bits, static_cast<std::size_t>(count_));
}

std::optional<std::string> DeviceBuffer::guard_damage(std::vector<float>& payload) const {
  std::vector<float> all(static_cast<std::size_t>(before_ + count_ + after_));
  device_->download(all.data(), whole_, 4 * all.size());
  payload.assign(all.begin() + before_, all.begin() + before_ + count_);
  for (std::int64_t i = -before_; i < count_ + after_; ++i)
    if ((i < 0 || i >= count_) &&
        std::bit_cast<std::uint32_t>(all[static_cast<std::size_t>(before_ + i)]) != marked_nan_bits)
      return "the guard band of '" + name_ + "' was overwritten at element " + std::to_string(i) + " of " +
             std::to_string(count_);
  return std::nullopt;
}

std::optional<std::string> DeviceBuffer::guard_damage() const {
  std::vector<float> payload;
  return guard_damage(payload);
}

}  // namespace gaugeblock::gpu
