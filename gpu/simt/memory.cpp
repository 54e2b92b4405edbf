#include "gaugeblock/gpu/simt/memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace gaugeblock::simt {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, std::unique_ptr<Region>> regions;  // by whole_begin
};

Registry& registry() {
  static Registry instance;
  return instance;
}

/// The part of the bytes that lies in the payload.
void mark(Region& region, const void* begin, std::size_t bytes, std::uint8_t written) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = std::max(from, region.begin);
  const std::uintptr_t end = std::min(from + bytes, region.begin + region.bytes);
  if (first >= end) return;
  std::fill_n(region.written.begin() + static_cast<std::ptrdiff_t>((first - region.begin) / 4),
              (end - first + 3) / 4, written);
}

}  // namespace

Region* add_region(std::string name, void* whole_begin, std::size_t whole_bytes, void* begin,
                   std::size_t bytes) {
  auto region = std::make_unique<Region>();
  region->name = std::move(name);
  region->begin = reinterpret_cast<std::uintptr_t>(begin);
  region->bytes = bytes;
  region->whole_begin = reinterpret_cast<std::uintptr_t>(whole_begin);
  region->whole_bytes = whole_bytes;
  region->written.assign((bytes + 3) / 4, 0);
  Region* result = region.get();
  const std::unique_lock lock(registry().mutex);
  registry().regions[result->whole_begin] = std::move(region);
  return result;
}

void remove_region(Region* region) {
  if (region == nullptr) return;
  const std::unique_lock lock(registry().mutex);
  registry().regions.erase(region->whole_begin);
}

Region* find_region(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::shared_lock lock(registry().mutex);
  auto next = registry().regions.upper_bound(at);
  if (next == registry().regions.begin()) return nullptr;
  Region* region = std::prev(next)->second.get();
  return at - region->whole_begin < region->whole_bytes ? region : nullptr;
}

void mark_written(Region& region, const void* begin, std::size_t bytes) {
  mark(region, begin, bytes, 1);
}

void mark_unwritten(Region& region, const void* begin, std::size_t bytes) {
  mark(region, begin, bytes, 0);
}

}  // namespace gaugeblock::simt
