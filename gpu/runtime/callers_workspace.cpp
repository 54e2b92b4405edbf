#include "gaugeblock/gpu/runtime/callers_workspace.h"

#include <algorithm>

#include "gaugeblock/gpu/runtime/errors.h"

namespace gaugeblock::gpu {
namespace {

constexpr std::size_t alignment_bytes = 256;

}  // namespace

void* CallersWorkspace::allocate(const std::string& name, std::size_t bytes, std::size_t, std::size_t) {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  const std::size_t end = begin + (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  if (memory_ != nullptr && end > bytes_)
    throw DeviceError("the workspace has " + std::to_string(bytes_) + " bytes, buffer '" + name +
                      "' reaches to " + std::to_string(end));
  ends_.push_back(end);
  most_used_ = std::max(most_used_, end);
  // A count needs an address that differs from null and is aligned; nobody goes there.
  return (memory_ != nullptr ? memory_ : reinterpret_cast<char*>(alignment_bytes)) + begin;
}

void CallersWorkspace::release(void*) noexcept {
  ends_.pop_back();  // buffers are destroyed in the reverse order of their making
}

void CallersWorkspace::upload(void*, const void*, std::size_t) {
  throw DeviceError("it copies from the host");
}

void CallersWorkspace::download(void*, const void*, std::size_t) {
  throw DeviceError("it waits for values from the device");
}

void CallersWorkspace::synchronize() {
  throw DeviceError("it waits for the device");
}

}  // namespace gaugeblock::gpu
