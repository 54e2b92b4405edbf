// The interpreter's machine: fibers, meeting points, and the record of who touched which word.
//
// Time. A block's barriers cut its execution into epochs, numbered through the launch; accesses of different
// epochs of one block are ordered. Within an epoch only __syncwarp orders, so every lane counts its own
// __syncwarps (its clock) and remembers, of every other lane of its warp, the clock up to which it has been
// ordered after it (a vector clock). An access by lane a at clock c happens before what lane b does now if
// and only if seen[b][a] >= c.
//
// Switching. A lane that has to wait picks its successor itself and jumps straight to it: one context switch
// for each wait. Only when nobody can go on does it return to the scheduler's own context. The jump is
// inlined into the kernel: a processor predicts the return of a function from where it was called, and a
// function that returns on another fiber than the one that called it is mispredicted every time.
#pragma once

#include <array>
#include <bit>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <source_location>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gaugeblock/gpu/simt/interpreter.h"
#include "gaugeblock/gpu/simt/memory.h"
#include "gaugeblock/gpu/simt/report.h"

#if defined(__SANITIZE_ADDRESS__)
#define GAUGEBLOCK_SIMT_ASAN 1
#endif

namespace gaugeblock::simt {

#if defined(__cpp_lib_source_location)
/// A place in a kernel's source. The compiler makes one static object per place, so its address serves as a
/// key.
using Site = std::source_location;
#else
/// The same, line by line only, where the compiler lacks std::source_location (clang before 16 with
/// libstdc++): the address of the file's name in the low 48 bits, the line above.
class Site {
 public:
  static Site current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    Site site;
    site.bits_ = reinterpret_cast<std::uintptr_t>(file) | static_cast<std::uintptr_t>(line) << 48;
    return site;
  }
  const char* file_name() const {
    return reinterpret_cast<const char*>(
        bits_ & ((std::uintptr_t{1} << 48) - 1));  // NOLINT(performance-no-int-to-ptr)
  }
  unsigned line() const { return static_cast<unsigned>(bits_ >> 48); }

 private:
  std::uintptr_t bits_ = 0;
};
#endif

inline const void* key(Site site) {
  static_assert(sizeof(Site) == sizeof(const void*), "a Site is one word");
  return std::bit_cast<const void*>(site);
}

/// Unwritten shared memory holds this NaN, so that a value taken from it shows without tracking too.
inline constexpr std::uint32_t unwritten = 0x7fc5a5a5;

/// What a request does, above the 48 bits of an address.
inline constexpr std::uint64_t pack_kind(unsigned bytes, Space space, Access access) {
  return std::uint64_t{bytes} << 48 | static_cast<std::uint64_t>(space) << 56 |
         static_cast<std::uint64_t>(access) << 60;
}

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/// What lanes wait for.
enum class Operation : std::uint8_t {
  none,
  shuffle,
  ballot,
  any,
  all,
  sync_warp,
  sync_threads,
  sync_count,
  sync_or,
  sync_and,
  log_full,
  exit
};

struct Warp;

struct Lane {
  void* context = nullptr;  // fcontext_t while it does not run
  dim3 thread;
  int id = 0;       // linear index in the block
  int in_warp = 0;  // id % 32
  Warp* warp = nullptr;
  Operation waits_for = Operation::none;
  Site waits_at;
  std::uint32_t clock = 1;
  unsigned char* stack = nullptr;  // its lowest usable address
  void* fake_stack = nullptr;      // AddressSanitizer's
};

/// Lanes of one mask on their way to the same operation.
struct Meeting {
  Operation operation{};
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  Site site;
};

/// One access of one lane, kept until its warp's accesses are put together into requests.
struct LogEntry {
  std::uint64_t address_and_kind;  // address in the low 48 bits; then size, space, access
  const void* site;
};

struct Warp {
  static constexpr int log_rows = 256;
  std::uint32_t live = 0;  // lanes that exist and have not exited
  std::uint32_t exists = 0;
  int meetings = 0;
  std::array<Meeting, 32> meeting;
  std::array<std::uint64_t, 32> value{};
  std::array<std::uint64_t, 32> result{};
  std::array<std::int8_t, 32> source{};
  std::array<std::uint16_t, 32> log_count{};
  bool seen_used = false;
  std::array<std::array<std::uint32_t, 32>, 32> seen{};
  std::unique_ptr<LogEntry[]> log;  // [log_rows][32]
};

class Engine {  // NOLINT(clang-analyzer-optin.performance.Padding): ordered by how often it is used
 public:
  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  LaunchRecord launch(const std::string& kernel, const LaunchShape& shape, const Options& options,
                      void (*body)(const void*), const void* body_data);

  // --- called by a running lane ---
  const dim3& thread_index() const { return lane_->thread; }
  const dim3& block_index() const { return block_index_; }
  const dim3& block_size() const { return block_size_; }
  const dim3& grid_size() const { return grid_size_; }
  int lane_in_warp() const { return lane_->in_warp; }

  /// Waits for the lanes of `mask`; returns this lane's result. `source`: the lane a shuffle reads.
  [[gnu::always_inline]] std::uint64_t exchange(Operation operation, std::uint32_t mask, std::uint64_t value,
                                                int source, Site site) {
    if (!arrive(operation, mask, value, source, site)) wait();
    return lane_->warp->result[static_cast<std::size_t>(lane_->in_warp)];
  }
  /// Waits for the block; returns the number of threads with a true predicate, or their disjunction or
  /// conjunction.
  [[gnu::always_inline]] int sync_threads(Operation operation, bool predicate, Site site) {
    if (!arrive_at_barrier(operation, predicate, site)) wait();
    return barrier_result_;
  }
  void thread_fence();

  Region* region_of(const void* pointer, Site site);
  unsigned char* static_shared(std::size_t bytes, Site site);
  unsigned char* dynamic_shared() { return shared_; }
  std::size_t dynamic_shared_bytes() const { return dynamic_bytes_; }

  void access_global(const void* address, unsigned bytes, Access access, Region* region, Site site) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - region->begin;
    if (offset >= region->bytes || offset + bytes > region->bytes) [[unlikely]]
      global_out_of_bounds(address, bytes, *region, site);
    if (tracking_)
      track_global(address, pack_kind(bytes, Space::global, access), region, site);
    else if (bytes > 4)
      check_alignment(address, bytes, site);
  }
  void access_shared(const void* address, unsigned bytes, Access access, const unsigned char* begin,
                     std::size_t array_bytes, Site site) {
    const std::size_t offset = static_cast<std::size_t>(static_cast<const unsigned char*>(address) - begin);
    if (offset >= array_bytes || offset + bytes > array_bytes) [[unlikely]]
      shared_out_of_bounds(address, bytes, begin, array_bytes, site);
    if (tracking_)
      track_shared(address, pack_kind(bytes, Space::shared, access), site);
    else if (bytes > 4)
      check_alignment(address, bytes, site);
  }
  /// An atomic on `address`: the place where blocks may order themselves.
  void atomic_happened(const void* address);

 private:
  struct LineCounter {
    const void* site = nullptr;
    std::uint64_t kind = 0;
    std::uint64_t requests = 0, units = 0;
  };
  struct StaticArray {
    const void* site;
    std::size_t offset, bytes;
  };
  struct Group {  // lanes that take part in one request
    const void* site;
    std::uint64_t kind;
    std::uint32_t mask;
    std::uint32_t next;  // chain of the groups of the same site and kind
    std::array<std::uint64_t, 32> address;
  };
  struct Chain {  // the requests of one site and kind, in the order of execution
    const void* site;
    std::uint64_t kind;
    std::uint32_t first, cursor;
    int lane;
  };
  struct Release {  // a block's fence, published by an atomic
    std::uint32_t first_epoch, fence_epoch;
    int thread;
  };
  struct Acquired {
    std::uint32_t fence_epoch = 0;
    int releasing_thread = -1;
    std::uint32_t epoch = 0;
    int thread = -1;
  };

  friend struct Fiber;

  /// A jump to be made: to `target`, keeping the running context in `*keep`.
  struct Jump {
    void* target;
    void** keep;
  };
  /// Whether all are there; if not, the lane has to wait.
  bool arrive(Operation operation, std::uint32_t mask, std::uint64_t value, int source, Site site);
  bool arrive_at_barrier(Operation operation, bool predicate, Site site);
  Jump leave(bool exits);  // to the next lane that can go on, or to the scheduler
  Jump leave_for_scheduler(bool exits);
  [[gnu::always_inline]] void wait() {
    const Jump jump = leave(false);
    const auto from = boost::context::detail::jump_fcontext(jump.target, jump.keep);
    *static_cast<void**>(from.data) = from.fctx;
#ifdef GAUGEBLOCK_SIMT_ASAN
    arrived(lane_->fake_stack);
#endif
  }
  void arrived(void* fake_stack);

  bool run_block();
  void resume(Lane& lane);  // from the scheduler
  [[noreturn]] void run_lane();
  void push_ready(Lane& lane) {
    ready_[ready_count_++] = static_cast<std::uint16_t>(lane.id);
  }
  Lane* pop_ready();
  void release_mask(Warp& warp, std::uint32_t mask, const Lane* except);
  void complete(Warp& warp, Meeting meeting);
  void release_barrier(const Lane* running);
  void exit_lane();
  void drain_logs();
  void report_deadlock();
  void report_no_progress();

  void add_report(ReportKind kind, Site site, const Site* other, std::vector<int> lanes, std::string message);
  void add_report(ReportKind kind, const void* site, const void* other, std::vector<int> lanes,
                  std::string message);
  [[noreturn]] void fatal(ReportKind kind, Site site, const Site* other, std::vector<int> lanes,
                          std::string message);

  [[noreturn]] void global_out_of_bounds(const void* address, unsigned bytes, const Region& region,
                                         Site site);
  [[noreturn]] void shared_out_of_bounds(const void* address, unsigned bytes, const unsigned char* begin,
                                         std::size_t array_bytes, Site site);
  void check_alignment(const void* address, unsigned bytes, Site site) {
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) [[unlikely]]
      misaligned(address, bytes, site);
  }
  [[noreturn]] void misaligned(const void* address, unsigned bytes, Site site);
  void track_global(const void* address, std::uint64_t kind, Region* region, Site site);
  void track_shared(const void* address, std::uint64_t kind, Site site);
  template <Space space>
  void touch(Cell& cell, Access access, const void* site);
  bool ordered_after_lane(std::uint32_t clock, int other_thread) const;
  bool ordered_after_block(std::uint32_t epoch, int thread) const;
  void report_race(const Cell& cell, bool other_writes, bool between_blocks, Access access, const void* site,
                   Space space);
  void log(std::uint64_t address, std::uint64_t kind, const void* site);
  void wait_for_room(Lane& lane);
  void flush(Warp& warp);
  void flush_ungrouped(Warp& warp, int first_row);
  void count_request(std::uint64_t kind, const void* site, std::uint32_t mask, const std::uint64_t* address);
  LineCounter& counter(const void* site, std::uint64_t kind);
  void grow_counters();

  // hot
  Lane* lane_ = nullptr;
  bool tracking_ = false;
  Schedule schedule_ = Schedule::in_order;
  dim3 block_index_, block_size_, grid_size_;
  int threads_ = 0, done_ = 0, at_barrier_ = 0, log_full_ = 0;
  std::uint32_t epoch_ = 1, block_first_epoch_ = 1;
  int ready_count_ = 0;
  std::array<std::uint16_t, 1024> ready_{};
  std::uint64_t random_state_ = 0;
  void* scheduler_ = nullptr;
  unsigned char* shared_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  std::uint32_t block_serial_ = 0;
  std::vector<Cell> shared_cells_;
  std::vector<std::uint32_t> shared_written_;  // serial of the block that wrote the word last

  // a barrier on its way
  Operation barrier_operation_ = Operation::none;
  Site barrier_site_;
  bool barrier_mismatch_ = false;
  int barrier_true_ = 0, barrier_result_ = 0;

  // cold
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::array<Region*, 16> recent_regions_{};
  Region no_region_;
  std::unique_ptr<unsigned char[]> shared_storage_;
  std::size_t static_bytes_ = 0;
  std::vector<StaticArray> static_arrays_;
  std::vector<LineCounter> counters_;
  std::size_t counters_used_ = 0;
  std::vector<Group> groups_;
  std::vector<Chain> chains_;
  LaunchShape shape_;
  LaunchRecord record_;
  std::vector<std::pair<const void*, const void*>> report_sites_;
  bool aborted_ = false;
  void (*body_)(const void*) = nullptr;
  const void* body_data_ = nullptr;
  std::exception_ptr exception_;
  std::uint64_t launch_id_ = 0;
  // blocks that order themselves
  std::vector<std::uint32_t> block_epochs_;
  std::vector<std::uint32_t> fences_;  // by thread: epoch + 1 of its last fence in this block
  bool any_fence_ = false;
  std::map<const void*, std::vector<Release>> releases_;
  std::unordered_map<std::uint32_t, Acquired> acquired_;  // by first epoch of the other block
  // AddressSanitizer's view of the scheduler's stack
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
  void* scheduler_fake_stack_ = nullptr;
  bool from_scheduler_ = false;
};

/// The engine of the kernel that this host thread is interpreting.
inline constinit thread_local Engine* current_engine = nullptr;
inline Engine& engine() {
  return *current_engine;
}

}  // namespace gaugeblock::simt
