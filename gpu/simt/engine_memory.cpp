// Bounds, races and costs of memory accesses.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "gaugeblock/gpu/simt/engine.h"

namespace gaugeblock::simt {
namespace {

constexpr std::uint64_t address_mask = (std::uint64_t{1} << 48) - 1;

/// 32-byte sectors that a request touches: what global memory moves. An aligned access lies in one sector.
unsigned count_sectors(std::uint32_t mask, const std::uint64_t* address) {
  std::array<std::uint64_t, 32> sector;
  unsigned count = 0;
  bool ascending = true;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t next = address[std::countr_zero(mask)] >> 5;
    if (count > 0 && sector[count - 1] == next) continue;
    ascending = ascending && (count == 0 || sector[count - 1] < next);
    sector[count++] = next;
  }
  if (ascending) return count;
  std::sort(sector.begin(), sector.begin() + count);
  return static_cast<unsigned>(std::unique(sector.begin(), sector.begin() + count) - sector.begin());
}

/// The largest number of different words in one of the 32 banks, over the lanes of `mask`.
unsigned most_words_in_a_bank(std::uint32_t mask, const std::uint64_t* address, unsigned bytes) {
  std::array<std::uint64_t, 32> word_of_bank;
  std::array<std::uint64_t, 128> extra;  // further words, whatever their bank: at most four a lane
  unsigned extras = 0;
  std::uint32_t used = 0;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t begin = address[std::countr_zero(mask)] / 4;
    for (std::uint64_t word = begin; word < begin + std::max(1U, bytes / 4); ++word) {
      const unsigned bank = word % 32;
      if ((used >> bank & 1) == 0) {
        used |= 1U << bank;
        word_of_bank[bank] = word;
      } else if (word_of_bank[bank] != word) {
        if (std::find(extra.begin(), extra.begin() + extras, word) == extra.begin() + extras)
          extra[extras++] = word;
      }
    }
  }
  unsigned most = used != 0 ? 1 : 0;
  if (extras > 0) {
    std::array<unsigned, 32> words{};
    for (unsigned i = 0; i < extras; ++i) most = std::max(most, ++words[extra[i] % 32] + 1);
  }
  return most;
}

/// Whether every lane of `mask` reads what its neighbour reads (the one whose number differs in the last
/// bit), or every lane what the lane reads whose number differs in the last bit but one.
bool read_in_pairs(std::uint32_t mask, const std::uint64_t* address) {
  for (const unsigned distance : {1U, 2U}) {
    bool same = true;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if ((mask >> (lane ^ distance) & 1) != 0) same = same && address[lane] == address[lane ^ distance];
    }
    if (same) return true;
  }
  return false;
}

/// Passes over the 32 banks that a request needs. Accesses of 8 and 16 bytes are served a half and a quarter
/// warp at a time, loads in pairs a whole and a half warp. So counts Nsight Compute on an H200, for addresses
/// and lanes at random too; tests/simt/launches.cpp has some of its figures.
unsigned count_wavefronts(std::uint32_t mask, const std::uint64_t* address, unsigned bytes, Access access) {
  if (bytes <= 4) return most_words_in_a_bank(mask, address, bytes);
  unsigned together = bytes == 8 ? 16 : 8;
  if (access == Access::load && read_in_pairs(mask, address)) together *= 2;
  if (together == 32) return most_words_in_a_bank(mask, address, bytes);
  unsigned total = 0;
  for (unsigned first = 0; first < 32; first += together)
    total += most_words_in_a_bank(mask & ((1U << together) - 1) << first, address, bytes);
  return total;
}

}  // namespace

Region* Engine::region_of(const void* pointer, Site site) {
  if (pointer == nullptr) return &no_region_;
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  for (Region* region : recent_regions_)
    if (region != nullptr && at - region->whole_begin < region->whole_bytes) return region;
  Region* region = find_region(pointer);
  if (region == nullptr)
    fatal(ReportKind::unknown_memory, site, nullptr, {lane_->id},
          "the pointer lies in no device buffer (is it a host pointer?)");
  std::rotate(recent_regions_.begin(), recent_regions_.end() - 1, recent_regions_.end());
  recent_regions_[0] = region;
  if (tracking_ && region->launch != launch_id_) {
    region->cells.assign(region->written.size(), Cell{});
    region->launch = launch_id_;
  }
  return region;
}

unsigned char* Engine::static_shared(std::size_t bytes, Site site) {
  for (const StaticArray& array : static_arrays_)
    if (array.site == key(site) && array.bytes == bytes) return shared_ + array.offset;
  const std::size_t offset = (dynamic_bytes_ + static_bytes_ + 15) / 16 * 16;
  const std::size_t new_static = offset + bytes - dynamic_bytes_;
  if (const auto reason = refusal(shape_, new_static)) {
    record_.static_shared_bytes = new_static;
    fatal(ReportKind::launch_refused, site, nullptr, {}, *reason);
  }
  static_arrays_.push_back({key(site), offset, bytes});
  static_bytes_ = new_static;
  if (tracking_) {
    shared_cells_.resize((offset + bytes + 3) / 4);
    shared_written_.resize((offset + bytes + 3) / 4, 0);
  }
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) std::memcpy(shared_ + offset + i, &unwritten, 4);
  return shared_ + offset;
}

void Engine::global_out_of_bounds(const void* address, unsigned bytes, const Region& region, Site site) {
  if (&region == &no_region_)
    fatal(ReportKind::global_out_of_bounds, site, nullptr, {lane_->id}, "access through a null pointer");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::string where;
  if (at < region.begin)
    where = std::to_string(region.begin - at) + " bytes before";
  else if (at >= region.begin + region.bytes)
    where = std::to_string(at - region.begin - region.bytes) + " bytes past";
  else
    where = "across the end of";
  const bool in_guard = at - region.whole_begin < region.whole_bytes;
  fatal(ReportKind::global_out_of_bounds, site, nullptr, {lane_->id},
        "access of " + std::to_string(bytes) + " bytes " + where + " buffer '" + region.name + "' of " +
            std::to_string(region.bytes) + " bytes" + (in_guard ? ", in its guard band" : ""));
}

void Engine::shared_out_of_bounds(const void* address, unsigned bytes, const unsigned char* begin,
                                  std::size_t array_bytes, Site site) {
  const auto offset = static_cast<const unsigned char*>(address) - begin;
  fatal(ReportKind::shared_out_of_bounds, site, nullptr, {lane_->id},
        "access of " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) +
            " of a shared array of " + std::to_string(array_bytes) + " bytes");
}

void Engine::misaligned(const void* address, unsigned bytes, Site site) {
  fatal(ReportKind::misaligned_access, site, nullptr, {lane_->id},
        "access of " + std::to_string(bytes) + " bytes at an address " +
            std::to_string(reinterpret_cast<std::uintptr_t>(address) % bytes) +
            " bytes past a multiple of it");
}

// ---------------------------------------------------------------------------------------------------------------
// Races

inline bool Engine::ordered_after_lane(std::uint32_t clock, int other_thread) const {
  if ((other_thread ^ lane_->id) >> 5 != 0) return false;
  return lane_->warp->seen[static_cast<std::size_t>(lane_->in_warp)][other_thread & 31] >= clock;
}

bool Engine::ordered_after_block(std::uint32_t epoch, int thread) const {
  if (acquired_.empty()) return false;
  const auto next = std::upper_bound(block_epochs_.begin(), block_epochs_.end(), epoch);
  if (next == block_epochs_.begin()) return false;
  const auto found = acquired_.find(*(next - 1));
  if (found == acquired_.end()) return false;
  const Acquired& acquired = found->second;
  const bool released =
      epoch < acquired.fence_epoch || (epoch == acquired.fence_epoch && thread == acquired.releasing_thread);
  return released && (acquired.epoch < epoch_ || acquired.thread == lane_->id);
}

void Engine::report_race(const Cell& cell, bool other_writes, bool between_blocks, Access access,
                         const void* site, Space space) {
  const void* other = other_writes ? cell.write_site : cell.read_site;
  const auto line = std::to_string(std::bit_cast<Site>(other).line());
  std::string message = access == Access::load    ? "reads"
                        : access == Access::store ? "writes"
                                                  : "atomically updates";
  message += " a word that ";
  if (between_blocks) {
    message += "another block";
  } else if (other_writes) {
    message += "thread " + std::to_string(cell.write_thread & Cell::thread_mask);
  } else if ((cell.read_warp & Cell::read_by_several_warps) != 0) {
    message += "threads of several warps";
  } else {
    std::uint32_t mask = cell.read_mask;
    if ((cell.read_warp & Cell::warp_mask) == lane_->id / 32) mask &= ~(1U << lane_->in_warp);
    message += "thread " + std::to_string((cell.read_warp & Cell::warp_mask) * 32 + std::countr_zero(mask));
  }
  message += other_writes ? " wrote in line " : " read in line ";
  message += line + ", and nothing orders the two";
  const ReportKind kind = space == Space::shared ? ReportKind::shared_race
                          : between_blocks       ? ReportKind::global_race_between_blocks
                                                 : ReportKind::global_race;
  add_report(kind, site, other, {lane_->id}, std::move(message));
}

template <Space space>
[[gnu::always_inline]] inline void Engine::touch(Cell& cell, Access access, const void* site) {
  const int id = lane_->id;
  const unsigned warp = static_cast<unsigned>(id) >> 5;
  const std::uint32_t bit = 1U << (id & 31);
  const bool atomic = access == Access::atomic;

  // The common case first: lanes of a warp read a word that no kernel writes.
  if (access == Access::load && cell.write_epoch == 0 && cell.read_epoch == epoch_ &&
      cell.read_clock == lane_->clock && (cell.read_warp & Cell::warp_mask) == warp) {
    cell.read_mask |= bit;
    cell.read_site = site;
    return;
  }

  // Against the last write. Atomics do not race with each other.
  if (cell.write_epoch != 0 && !(atomic && (cell.write_thread & Cell::atomic) != 0)) {
    if (cell.write_epoch == epoch_) {
      const int writer = cell.write_thread & Cell::thread_mask;
      if ((writer != id && !ordered_after_lane(cell.write_clock, writer)) ||
          (cell.write_thread & Cell::atomic_in_several_warps) != 0)
        report_race(cell, true, false, access, site, space);
    } else if (space == Space::global && cell.write_epoch < block_first_epoch_ &&
               !ordered_after_block(cell.write_epoch, cell.write_thread & Cell::thread_mask)) {
      report_race(cell, true, true, access, site, space);
    }
  }

  if (access == Access::load) {
    if (cell.read_epoch == epoch_) {
      const unsigned reader = cell.read_warp & Cell::warp_mask;
      if ((cell.read_warp & Cell::read_by_several_warps) != 0) {
        // Any write in this epoch will race; who read no longer matters.
      } else if (reader != warp) {
        cell.read_warp |= Cell::read_by_several_warps;
        cell.read_site = site;
      } else if (cell.read_clock == lane_->clock) {
        cell.read_mask |= bit;
        cell.read_site = site;
      } else {
        // Readers that happened before this read need not be remembered: what is ordered after it is ordered
        // after them. Otherwise the smallest clock is kept, which can hide a race but never invent one.
        bool all_before = true;
        for (std::uint32_t others = cell.read_mask & ~bit; others != 0; others &= others - 1)
          all_before = all_before && ordered_after_lane(cell.read_clock, static_cast<int>(warp * 32) +
                                                                             std::countr_zero(others));
        cell.read_mask = all_before ? bit : cell.read_mask | bit;
        cell.read_clock = all_before ? lane_->clock : std::min(cell.read_clock, lane_->clock);
        cell.read_site = site;
      }
      return;
    }
    const bool by_other_blocks = (cell.read_epoch != 0 && cell.read_epoch < block_first_epoch_) ||
                                 (cell.read_warp & Cell::read_by_other_blocks) != 0;
    cell.read_epoch = epoch_;
    cell.read_clock = lane_->clock;
    cell.read_mask = bit;
    cell.read_site = site;
    cell.read_warp = static_cast<std::uint16_t>(warp | (by_other_blocks ? Cell::read_by_other_blocks : 0));
    return;
  }

  // A write, against the reads since the last one.
  if (cell.read_epoch == epoch_) {
    bool race = (cell.read_warp & Cell::read_by_several_warps) != 0;
    for (std::uint32_t others = cell.read_mask; !race && others != 0; others &= others - 1) {
      const int reader = (cell.read_warp & Cell::warp_mask) * 32 + std::countr_zero(others);
      race = reader != id && !ordered_after_lane(cell.read_clock, reader);
    }
    if (race) report_race(cell, false, false, access, site, space);
  }
  if (space == Space::global && acquired_.empty() && cell.read_epoch != 0 &&
      (cell.read_epoch < block_first_epoch_ || (cell.read_warp & Cell::read_by_other_blocks) != 0))
    report_race(cell, false, true, access, site, space);

  auto thread = static_cast<std::uint16_t>(id);
  if (atomic) {
    thread |= Cell::atomic;
    if (cell.write_epoch == epoch_ && (cell.write_thread & Cell::atomic) != 0 &&
        ((cell.write_thread & Cell::atomic_in_several_warps) != 0 ||
         (cell.write_thread & Cell::thread_mask) >> 5 != warp))
      thread |= Cell::atomic_in_several_warps;
  } else {
    // Ordered after those reads (or reported): whatever is ordered after this write is ordered after them.
    cell.read_epoch = 0;
    cell.read_warp = 0;
  }
  cell.write_epoch = epoch_;
  cell.write_clock = lane_->clock;
  cell.write_site = site;
  cell.write_thread = thread;
}

void Engine::wait_for_room(Lane& lane) {
  lane.waits_for = Operation::log_full;
  ++log_full_;
  wait();
}

[[gnu::always_inline]] inline void Engine::log(std::uint64_t address, std::uint64_t kind, const void* site) {
  Lane& lane = *lane_;
  Warp& warp = *lane.warp;
  const auto in_warp = static_cast<std::size_t>(lane.in_warp);
  // A full log waits until the other lanes of the warp have come as far or have to wait themselves.
  if (warp.log_count[in_warp] == Warp::log_rows) [[unlikely]]
    wait_for_room(lane);
  warp.log[static_cast<std::size_t>(warp.log_count[in_warp]++) * 32 + in_warp] = {address | kind, site};
}

void Engine::track_global(const void* address, std::uint64_t kind, Region* region, Site site) {
  const unsigned bytes = kind >> 48 & 0xff;
  const auto access = static_cast<Access>(kind >> 60);
  if (bytes > 4) check_alignment(address, bytes, site);
  log(reinterpret_cast<std::uintptr_t>(address), kind, key(site));
  const std::size_t first = (reinterpret_cast<std::uintptr_t>(address) - region->begin) / 4;
  for (std::size_t word = first; word < first + bytes / 4; ++word) {
    if (region->written[word] == 0) [[unlikely]] {
      if (access != Access::store)
        add_report(ReportKind::uninitialized_global, site, nullptr, {lane_->id},
                   "reads element " + std::to_string(word) + " of buffer '" + region->name +
                       "', which nothing wrote");
      if (access != Access::load) region->written[word] = 1;
    }
    touch<Space::global>(region->cells[word], access, key(site));
  }
}

void Engine::track_shared(const void* address, std::uint64_t kind, Site site) {
  const unsigned bytes = kind >> 48 & 0xff;
  const auto access = static_cast<Access>(kind >> 60);
  if (bytes > 4) check_alignment(address, bytes, site);
  const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(address) - shared_);
  log(offset, kind, key(site));
  for (std::size_t word = offset / 4; word < offset / 4 + bytes / 4; ++word) {
    if (shared_written_[word] != block_serial_) {
      if (access != Access::store)
        add_report(ReportKind::uninitialized_shared, site, nullptr, {lane_->id},
                   "reads byte " + std::to_string(4 * word) +
                       " of the block's shared memory, which this block never wrote");
      if (access != Access::load) shared_written_[word] = block_serial_;
    }
    touch<Space::shared>(shared_cells_[word], access, key(site));
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Costs
//
// The n-th execution of a source line by each lane, counted since the warp last came together, is one
// request. That is what a GPU does where the lanes run in step, and the most that can be known where they do
// not.

void Engine::flush(Warp& warp) {
  int rows = 0;
  for (const std::uint16_t count : warp.log_count) rows = std::max<int>(rows, count);
  for (int row = 0; row < rows; ++row) {
    const LogEntry* entries = &warp.log[static_cast<std::size_t>(row) * 32];
    std::array<std::uint64_t, 32> address;
    std::uint32_t mask = 0;
    const void* site = nullptr;
    std::uint64_t kind = 0;
    bool in_step = true;
    for (int i = 0; i < 32; ++i) {
      if (warp.log_count[i] <= row) continue;
      const std::uint64_t entry_kind = entries[i].address_and_kind & ~address_mask;
      if (mask == 0) {
        site = entries[i].site;
        kind = entry_kind;
      }
      in_step = in_step && entries[i].site == site && entry_kind == kind;
      address[i] = entries[i].address_and_kind & address_mask;
      mask |= 1U << i;
    }
    if (!in_step) {
      flush_ungrouped(warp, row);
      break;
    }
    count_request(kind, site, mask, address.data());
  }
  warp.log_count.fill(0);
}

void Engine::flush_ungrouped(Warp& warp, int first_row) {
  // groups_: for each place, a chain of requests in the order of execution.
  constexpr std::uint32_t none = 0xffffffff;
  std::vector<Chain>& chains = chains_;
  chains.clear();
  groups_.clear();
  for (int i = 0; i < 32; ++i) {
    std::size_t hint = 0;
    for (int row = first_row; row < warp.log_count[i]; ++row) {
      const LogEntry& entry = warp.log[static_cast<std::size_t>(row) * 32 + static_cast<std::size_t>(i)];
      const std::uint64_t kind = entry.address_and_kind & ~address_mask;
      // Lanes mostly follow the same order of places, so the search goes on from the last one found.
      std::size_t at = hint;
      std::size_t searched = 0;
      while (searched < chains.size()) {
        if (at >= chains.size()) at = 0;
        if (chains[at].site == entry.site && chains[at].kind == kind) break;
        ++at;
        ++searched;
      }
      if (searched == chains.size()) {
        at = chains.size();
        chains.push_back({entry.site, kind, none, none, -1});
      }
      hint = at + 1;
      Chain& chain = chains[at];
      const std::uint32_t next = chain.lane != i        ? chain.first
                                 : chain.cursor == none ? none
                                                        : groups_[chain.cursor].next;
      std::uint32_t group = next;
      if (group == none) {
        group = static_cast<std::uint32_t>(groups_.size());
        groups_.emplace_back();
        groups_.back().site = entry.site;
        groups_.back().kind = kind;
        groups_.back().mask = 0;
        groups_.back().next = none;
        if (chain.lane != i)
          chain.first = group;
        else
          groups_[chain.cursor].next = group;
      }
      chain.lane = i;
      chain.cursor = group;
      groups_[group].mask |= 1U << i;
      groups_[group].address[static_cast<std::size_t>(i)] = entry.address_and_kind & address_mask;
    }
  }
  for (const Group& group : groups_) count_request(group.kind, group.site, group.mask, group.address.data());
}

void Engine::count_request(std::uint64_t kind, const void* site, std::uint32_t mask,
                           const std::uint64_t* address) {
  LineCounter& count = counter(site, kind);
  ++count.requests;
  if ((kind >> 56 & 0xf) == std::uint64_t(Space::shared))
    count.units += count_wavefronts(mask, address, kind >> 48 & 0xff, static_cast<Access>(kind >> 60));
  else
    count.units += count_sectors(mask, address);
}

Engine::LineCounter& Engine::counter(const void* site, std::uint64_t kind) {
  if (2 * counters_used_ >= counters_.size()) grow_counters();
  const std::size_t mask = counters_.size() - 1;
  std::size_t at =
      ((reinterpret_cast<std::uintptr_t>(site) >> 3) ^ (kind >> 50)) * 0x9e3779b97f4a7c15 >> 32 & mask;
  while (counters_[at].site != nullptr && (counters_[at].site != site || counters_[at].kind != kind))
    at = (at + 1) & mask;
  if (counters_[at].site == nullptr) {
    counters_[at].site = site;
    counters_[at].kind = kind;
    ++counters_used_;
  }
  return counters_[at];
}

void Engine::grow_counters() {
  const std::vector<LineCounter> old =
      std::exchange(counters_, std::vector<LineCounter>(2 * counters_.size()));
  counters_used_ = 0;
  for (const LineCounter& entry : old)
    if (entry.site != nullptr) counter(entry.site, entry.kind) = entry;
}

}  // namespace gaugeblock::simt
