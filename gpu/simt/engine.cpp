#include "gaugeblock/gpu/simt/engine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <string_view>

#ifdef GAUGEBLOCK_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace gaugeblock::simt {
namespace {

// A kernel's frame holds at most a few hundred floats; printing helpers called from it need the rest.
constexpr std::size_t stack_bytes = 64 * 1024;
// A fault repeats at few places; more distinct places than this add nothing to a report.
constexpr std::size_t max_reports = 64;
// Full logs in a row after which a block counts as spinning: 50 million accesses of one thread.
constexpr int max_drains = 200'000;

Site site_of(const void* key) {
  return std::bit_cast<Site>(key);
}

SourceLine source_line(const void* site) {
  if (site == nullptr) return {};
  const Site location = site_of(site);
  std::string_view file = location.file_name();
  for (const std::string_view root : {"/gpu/", "/tests/"}) {
    const std::size_t at = file.rfind(root);
    if (at != std::string_view::npos) {
      file.remove_prefix(at + 1);
      return {std::string(file), static_cast<int>(location.line())};
    }
  }
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return {std::string(file), static_cast<int>(location.line())};
}

unsigned char* allocate_stack() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);  // an overflow faults instead of spoiling the neighbour
  return static_cast<unsigned char*>(memory) + page;
}

void free_stack(unsigned char* stack) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  munmap(stack - page, stack_bytes + page);
}

std::vector<int> lanes_of_mask(std::uint32_t mask, int warp_first) {
  std::vector<int> lanes;
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) lanes.push_back(warp_first + i);
  return lanes;
}

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::shuffle:
      return "a shuffle";
    case Operation::ballot:
      return "__ballot_sync";
    case Operation::any:
      return "__any_sync";
    case Operation::all:
      return "__all_sync";
    case Operation::sync_warp:
      return "__syncwarp";
    default:
      return "__syncthreads";
  }
}

std::uint64_t next_random(std::uint64_t& state) {  // SplitMix64
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t new_launch_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

std::optional<std::string> refusal(const LaunchShape& shape, std::uint64_t static_shared_bytes,
                                   const LaunchLimits& limits) {
  constexpr std::array<char, 3> axis{'x', 'y', 'z'};
  std::uint64_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto named = [&](const char* what, std::uint64_t size, std::uint64_t limit) {
      return std::string(what) + "." + axis[i] + " is " + std::to_string(size) + ", allowed are 1 to " +
             std::to_string(limit);
    };
    if (shape.grid[i] < 1 || shape.grid[i] > limits.grid[i])
      return named("grid", shape.grid[i], limits.grid[i]);
    if (shape.block[i] < 1 || shape.block[i] > limits.block[i])
      return named("block", shape.block[i], limits.block[i]);
    threads *= shape.block[i];
  }
  if (threads > limits.threads)
    return std::to_string(threads) + " threads in a block, allowed are " + std::to_string(limits.threads);
  const std::uint64_t limit = shape.shared_opt_in ? limits.shared_opt_in_bytes : limits.shared_bytes;
  if (shape.dynamic_shared_bytes + static_shared_bytes > limit)
    return std::to_string(shape.dynamic_shared_bytes) + " bytes of dynamic and " +
           std::to_string(static_shared_bytes) + " of static shared memory, allowed are " +
           std::to_string(limit) + (shape.shared_opt_in ? "" : " without the opt-in");
  return std::nullopt;
}

LaunchRecord interpret(const std::string& kernel, const LaunchShape& shape, const Options& options,
                       void (*body)(const void*), const void* body_data) {
  thread_local std::unique_ptr<Engine> machine;
  if (!machine) machine = std::make_unique<Engine>();
  return machine->launch(kernel, shape, options, body, body_data);
}

Engine::Engine() : shared_storage_(new unsigned char[LaunchLimits{}.shared_opt_in_bytes + 512]) {
  void* aligned = shared_storage_.get();
  std::size_t space = LaunchLimits{}.shared_opt_in_bytes + 512;
  shared_ = static_cast<unsigned char*>(std::align(256, space - 256, aligned, space));
  no_region_.name = "null";
  fences_.assign(1024, 0);
}

Engine::~Engine() {
  for (Lane& lane : lanes_) free_stack(lane.stack);
}

// ---------------------------------------------------------------------------------------------------------------
// Fibers

/// Unwinds the lane that met a fatal fault. The other lanes' stacks are dropped as they are: kernels own
/// nothing.
struct LaunchEnded {};

struct Fiber {
  static void main(boost::context::detail::transfer_t from) {
    *static_cast<void**>(from.data) = from.fctx;
    engine().arrived(nullptr);
    engine().run_lane();
  }
};

void Engine::arrived([[maybe_unused]] void* fake_stack) {
#ifdef GAUGEBLOCK_SIMT_ASAN
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
  if (from_scheduler_) {
    scheduler_stack_ = stack;
    scheduler_stack_bytes_ = bytes;
    from_scheduler_ = false;
  }
#endif
}

Engine::Jump Engine::leave(bool exits) {
  if (ready_count_ == 0) return leave_for_scheduler(exits);
  Lane* self = lane_;
  Lane* next = pop_ready();
  lane_ = next;
#ifdef GAUGEBLOCK_SIMT_ASAN
  __sanitizer_start_switch_fiber(exits ? nullptr : &self->fake_stack, next->stack, stack_bytes);
#endif
  return {next->context, &self->context};
}

Engine::Jump Engine::leave_for_scheduler([[maybe_unused]] bool exits) {
  Lane* self = lane_;
#ifdef GAUGEBLOCK_SIMT_ASAN
  __sanitizer_start_switch_fiber(exits ? nullptr : &self->fake_stack, scheduler_stack_,
                                 scheduler_stack_bytes_);
#endif
  return {scheduler_, &self->context};
}

void Engine::resume(Lane& lane) {
  lane_ = &lane;
#ifdef GAUGEBLOCK_SIMT_ASAN
  from_scheduler_ = true;
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, lane.stack, stack_bytes);
#endif
  const auto from = boost::context::detail::jump_fcontext(lane.context, &scheduler_);
  *static_cast<void**>(from.data) = from.fctx;
#ifdef GAUGEBLOCK_SIMT_ASAN
  from_scheduler_ = false;
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
}

void Engine::run_lane() {
  try {
    body_(body_data_);
    exit_lane();
  } catch (const LaunchEnded&) {
    aborted_ = true;
  } catch (...) {
    exception_ = std::current_exception();
    aborted_ = true;
  }
  // The catch blocks are left by now: the list of caught exceptions belongs to the host thread, not to the
  // fiber.
  const Jump jump = aborted_ ? leave_for_scheduler(true) : leave(true);
  boost::context::detail::jump_fcontext(jump.target, jump.keep);
  __builtin_unreachable();
}

inline Lane* Engine::pop_ready() {
  if (schedule_ == Schedule::random) {
    const auto pick = static_cast<int>((next_random(random_state_) >> 32) * ready_count_ >> 32);
    std::swap(ready_[pick], ready_[ready_count_ - 1]);
  }
  return &lanes_[ready_[--ready_count_]];
}

// ---------------------------------------------------------------------------------------------------------------
// A launch

LaunchRecord Engine::launch(const std::string& kernel, const LaunchShape& shape, const Options& options,
                            void (*body)(const void*), const void* body_data) {
  record_ = LaunchRecord{};
  record_.kernel = kernel;
  record_.grid = shape.grid;
  record_.block = shape.block;
  record_.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  report_sites_.clear();
  shape_ = shape;
  aborted_ = false;
  exception_ = nullptr;
  launch_id_ = new_launch_id();
  if (const auto reason = refusal(shape, 0)) {
    add_report(ReportKind::launch_refused, nullptr, nullptr, {}, *reason);
    return std::move(record_);
  }

  tracking_ = options.tracking;
  schedule_ = options.schedule;
  random_state_ = options.seed;
  body_ = body;
  body_data_ = body_data;
  grid_size_ = {shape.grid[0], shape.grid[1], shape.grid[2]};
  block_size_ = {shape.block[0], shape.block[1], shape.block[2]};
  threads_ = static_cast<int>(block_size_.x * block_size_.y * block_size_.z);
  while (static_cast<int>(lanes_.size()) < threads_) {
    Lane lane;
    lane.stack = allocate_stack();
    lanes_.push_back(lane);
  }
  const int warps = (threads_ + 31) / 32;
  while (static_cast<int>(warps_.size()) < warps) warps_.push_back(std::make_unique<Warp>());
  for (int w = 0; w < warps; ++w) {
    const int lanes = std::min(32, threads_ - 32 * w);
    warps_[w]->exists = lanes == 32 ? 0xffffffffU : (1U << lanes) - 1;
    warps_[w]->log_count.fill(0);
    if (tracking_ && !warps_[w]->log) warps_[w]->log.reset(new LogEntry[32 * Warp::log_rows]);
  }
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[i];
    lane.id = i;
    lane.in_warp = i % 32;
    lane.warp = warps_[i / 32].get();
    lane.thread.x = i % block_size_.x;
    lane.thread.y = i / block_size_.x % block_size_.y;
    lane.thread.z = i / (block_size_.x * block_size_.y);
  }
  recent_regions_.fill(nullptr);
  dynamic_bytes_ = shape.dynamic_shared_bytes;
  static_bytes_ = 0;
  static_arrays_.clear();
  counters_.assign(256, {});
  counters_used_ = 0;
  block_serial_ = 0;
  epoch_ = 1;
  if (tracking_) {
    shared_cells_.assign((dynamic_bytes_ + 3) / 4, {});
    shared_written_.assign((dynamic_bytes_ + 3) / 4, 0);
  }
  block_epochs_.clear();
  releases_.clear();

  const std::uint64_t blocks = std::uint64_t{grid_size_.x} * grid_size_.y * grid_size_.z;
  std::vector<std::uint32_t> order;
  if (schedule_ == Schedule::random && blocks <= 0xffffffffU) {
    order.resize(blocks);
    for (std::uint64_t i = 0; i < blocks; ++i) order[i] = static_cast<std::uint32_t>(i);
    for (std::uint64_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[next_random(random_state_) % i]);
  }
  Engine* const outer = std::exchange(current_engine, this);
  bool completed = true;
  for (std::uint64_t n = 0; completed && n < blocks; ++n) {
    const std::uint64_t at = !order.empty() ? order[n] : schedule_ == Schedule::reversed ? blocks - 1 - n : n;
    block_index_.x = static_cast<unsigned>(at % grid_size_.x);
    block_index_.y = static_cast<unsigned>(at / grid_size_.x % grid_size_.y);
    block_index_.z = static_cast<unsigned>(at / (std::uint64_t{grid_size_.x} * grid_size_.y));
    completed = run_block();
  }
  current_engine = outer;
  if (exception_) std::rethrow_exception(exception_);

  record_.completed = completed;
  record_.static_shared_bytes = static_bytes_;
  std::map<std::pair<SourceLine, std::uint64_t>, LineCost>
      lines;  // one place may have several static records
  for (const LineCounter& counter : counters_) {
    if (counter.site == nullptr) continue;
    LineCost cost;
    cost.at = source_line(counter.site);
    cost.bytes = static_cast<int>(counter.kind >> 48 & 0xff);
    cost.space = static_cast<Space>(counter.kind >> 56 & 0xf);
    cost.access = static_cast<Access>(counter.kind >> 60);
    LineCost& sum = lines.emplace(std::pair{cost.at, counter.kind}, cost).first->second;
    sum.requests += counter.requests;
    sum.units += counter.units;
    if (cost.space == Space::global) {
      record_.cost.global_requests += counter.requests;
      record_.cost.global_sectors += counter.units;
    } else if (cost.space == Space::shared) {
      record_.cost.shared_requests += counter.requests;
      record_.cost.shared_wavefronts += counter.units;
    }
  }
  for (auto& [at, cost] : lines) record_.lines.push_back(std::move(cost));
  return std::move(record_);
}

bool Engine::run_block() {
  ++block_serial_;
  block_first_epoch_ = ++epoch_;
  done_ = at_barrier_ = log_full_ = ready_count_ = 0;
  barrier_mismatch_ = false;
  acquired_.clear();
  block_epochs_.push_back(block_first_epoch_);
  if (any_fence_) std::fill(fences_.begin(), fences_.end(), 0U);
  any_fence_ = false;
  for (std::size_t i = 0; i < (dynamic_bytes_ + static_bytes_ + 3) / 4; ++i)
    std::memcpy(shared_ + 4 * i, &unwritten, 4);
  for (int w = 0; w < (threads_ + 31) / 32; ++w) {
    Warp& warp = *warps_[w];
    warp.live = warp.exists;
    warp.meetings = 0;
    if (warp.seen_used)
      for (auto& row : warp.seen) row.fill(0);
    warp.seen_used = false;
  }
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[i];
    lane.waits_for = Operation::none;
    lane.clock = 1;
#ifdef GAUGEBLOCK_SIMT_ASAN
    __asan_unpoison_memory_region(lane.stack, stack_bytes);  // frames of a launch that ended early
#endif
    // Stacks lie whole pages apart; without a shift of their own all lanes' frames would fall into the same
    // few sets of the processor's first cache.
    const std::size_t shift = static_cast<std::size_t>(i) * 5 % 64 * 64;
    lane.context = boost::context::detail::make_fcontext(lane.stack + stack_bytes - shift,
                                                         stack_bytes - shift, &Fiber::main);
    push_ready(lanes_[schedule_ == Schedule::reversed ? i : threads_ - 1 - i]);
  }
  int drains = 0;
  std::uint64_t events_before = 0;
  while (done_ < threads_) {
    if (ready_count_ == 0) {
      if (log_full_ == 0) {
        report_deadlock();
        return false;
      }
      const std::uint64_t events =
          record_.cost.barriers + record_.cost.exchanges + static_cast<std::uint64_t>(done_);
      drains = events == events_before ? drains + 1 : 0;
      events_before = events;
      if (drains > max_drains) {
        report_no_progress();
        return false;
      }
      drain_logs();
      continue;
    }
    resume(*pop_ready());
    if (aborted_) return false;
  }
  if (tracking_)
    for (int w = 0; w < (threads_ + 31) / 32; ++w) flush(*warps_[w]);
  return true;
}

// ---------------------------------------------------------------------------------------------------------------
// Meeting points

bool Engine::arrive(Operation operation, std::uint32_t mask, std::uint64_t value, int source, Site site) {
  Lane& lane = *lane_;
  Warp& warp = *lane.warp;
  const int in_warp = lane.in_warp;
  const std::uint32_t bit = 1U << in_warp;
  const int warp_first = lane.id - in_warp;
  if ((mask & bit) == 0)
    fatal(ReportKind::lane_outside_own_mask, site, nullptr, {lane.id},
          std::string("the calling lane is not in the mask of ") + name_of(operation));
  if (const std::uint32_t gone = mask & ~warp.live; gone != 0) {
    const bool exists = (gone & warp.exists) != 0;
    fatal(ReportKind::missing_lane, site, nullptr, lanes_of_mask(gone, warp_first),
          std::string(name_of(operation)) + " names lanes that " +
              (exists ? "have exited" : "the block does not have"));
  }
  warp.value[in_warp] = value;
  warp.source[in_warp] = static_cast<std::int8_t>(source);

  int at = 0;
  while (at < warp.meetings && (warp.meeting[at].mask != mask || warp.meeting[at].operation != operation))
    ++at;
  if (at == warp.meetings) {
    for (int other = 0; other < warp.meetings; ++other) {
      const Meeting& meeting = warp.meeting[other];
      // The same lanes cannot all be at both. (Where masks differ, the lanes may still come one after the
      // other.)
      if (meeting.mask == mask)
        fatal(ReportKind::divergent_exchange, site, &meeting.site, {lane.id},
              std::string("came to ") + name_of(operation) + " while lanes " +
                  lane_ranges(lanes_of_mask(meeting.arrived, warp_first)) + " of the same mask wait at " +
                  name_of(meeting.operation) + " in line " + std::to_string(meeting.site.line()));
    }
    warp.meeting[warp.meetings++] = {operation, mask, 0, site};
  }
  Meeting& meeting = warp.meeting[at];
  if (operation != Operation::sync_warp && key(meeting.site) != key(site))
    fatal(ReportKind::divergent_exchange, site, &meeting.site, {lane.id},
          std::string("came to ") + name_of(operation) + " here, lanes " +
              lane_ranges(lanes_of_mask(meeting.arrived, warp_first)) + " of the same mask in line " +
              std::to_string(meeting.site.line()));
  meeting.arrived |= bit;
  if (meeting.arrived == mask) {
    const Meeting complete_meeting = meeting;
    warp.meeting[at] = warp.meeting[--warp.meetings];
    complete(warp, complete_meeting);
    return true;
  }
  lane.waits_for = operation;
  lane.waits_at = site;
  return false;
}

void Engine::complete(Warp& warp, Meeting meeting) {
  const std::uint32_t mask = meeting.mask;
  switch (meeting.operation) {
    case Operation::shuffle: {
      std::uint32_t wrong = 0;
      for (int i = 0; i < 32; ++i) {
        const int source = warp.source[i] & 31;
        warp.result[i] = warp.value[source];
        wrong |= (~mask >> source & 1U) << i;
      }
      wrong &= mask;
      if (wrong != 0) [[unlikely]] {
        for (int i = 0; i < 32; ++i)
          if (wrong >> i & 1) warp.result[i] = std::uint64_t{unwritten} << 32 | unwritten;
        add_report(ReportKind::shuffle_source_outside_mask, meeting.site, nullptr,
                   lanes_of_mask(wrong, lane_->id - lane_->in_warp),
                   "reads a lane that the shuffle's mask does not name: the value is undefined");
      }
      break;
    }
    case Operation::sync_warp:
      if (tracking_) {
        warp.seen_used = true;
        std::array<std::uint32_t, 32> merged;
        Lane* const first = lane_ - lane_->in_warp;
        for (int j = 0; j < 32; ++j) {
          if (mask >> j & 1) {
            merged[j] = first[j].clock++;
          } else {
            merged[j] = 0;
            for (int i = 0; i < 32; ++i)
              if (mask >> i & 1) merged[j] = std::max(merged[j], warp.seen[i][j]);
          }
        }
        for (int i = 0; i < 32; ++i)
          if (mask >> i & 1) warp.seen[i] = merged;
      }
      break;
    default: {
      std::uint32_t votes = 0;
      for (int i = 0; i < 32; ++i)
        if ((mask >> i & 1) && warp.value[i] != 0) votes |= 1U << i;
      const std::uint64_t result = meeting.operation == Operation::ballot ? votes
                                   : meeting.operation == Operation::any  ? votes != 0
                                                                          : votes == mask;
      for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) warp.result[i] = result;
    }
  }
  if (meeting.operation != Operation::sync_warp) {
    ++record_.cost.exchanges;
    if (tracking_) ++counter(key(meeting.site), pack_kind(0, Space::none, Access::exchange)).requests;
  }
  if (tracking_ && mask == warp.live) flush(warp);
  release_mask(warp, mask, lane_);
}

inline void Engine::release_mask(Warp&, std::uint32_t mask, const Lane* running) {
  Lane* const first = &lanes_[running->id - running->in_warp];
  mask &= ~(1U << running->in_warp);
  if (schedule_ == Schedule::reversed) {
    for (; mask != 0; mask &= mask - 1) push_ready(first[std::countr_zero(mask)]);
  } else {
    while (mask != 0) {
      const int last = 31 - std::countl_zero(mask);
      mask &= ~(1U << last);
      push_ready(first[last]);
    }
  }
}

bool Engine::arrive_at_barrier(Operation operation, bool predicate, Site site) {
  Lane& lane = *lane_;
  if (at_barrier_++ == 0) {
    barrier_operation_ = operation;
    barrier_site_ = site;
    barrier_true_ = 0;
  } else if (key(site) != key(barrier_site_)) {
    barrier_mismatch_ = true;
  }
  barrier_true_ += predicate ? 1 : 0;
  lane.waits_for = operation;
  lane.waits_at = site;
  if (at_barrier_ != threads_ - done_) return false;
  release_barrier(&lane);
  return true;
}

void Engine::release_barrier(const Lane* running) {
  const auto waits_at_barrier = [](const Lane& lane) {
    return lane.waits_for >= Operation::sync_threads && lane.waits_for <= Operation::sync_and;
  };
  if (barrier_mismatch_) {
    // The report names the smaller side: the threads that went astray.
    std::vector<int> here, there;
    Site other = barrier_site_;
    for (int i = 0; i < threads_; ++i)
      if (waits_at_barrier(lanes_[i]) && key(lanes_[i].waits_at) != key(barrier_site_))
        other = lanes_[i].waits_at;
    for (int i = 0; i < threads_; ++i) {
      if (!waits_at_barrier(lanes_[i])) continue;
      if (key(lanes_[i].waits_at) == key(barrier_site_))
        here.push_back(i);
      else if (key(lanes_[i].waits_at) == key(other))
        there.push_back(i);
    }
    Site at = other, against = barrier_site_;
    if (here.size() < there.size()) {
      std::swap(at, against);
      std::swap(here, there);
    }
    fatal(ReportKind::barrier_divergence, at, &against, there,
          "wait at a barrier here while " + std::to_string(here.size()) +
              " threads of the block wait in line " + std::to_string(against.line()));
  }
  switch (barrier_operation_) {
    case Operation::sync_or:
      barrier_result_ = barrier_true_ > 0 ? 1 : 0;
      break;
    case Operation::sync_and:
      barrier_result_ = barrier_true_ == at_barrier_ ? 1 : 0;
      break;
    default:
      barrier_result_ = barrier_true_;
  }
  at_barrier_ = 0;
  ++epoch_;
  ++record_.cost.barriers;
  if (tracking_) {
    ++counter(key(barrier_site_), pack_kind(0, Space::none, Access::barrier)).requests;
    for (int w = 0; w < (threads_ + 31) / 32; ++w) flush(*warps_[w]);
  }
  for (int n = 0; n < threads_; ++n) {
    Lane& lane = lanes_[schedule_ == Schedule::reversed ? n : threads_ - 1 - n];
    if (!waits_at_barrier(lane)) continue;
    lane.waits_for = Operation::none;
    if (&lane != running) push_ready(lane);
  }
}

void Engine::exit_lane() {
  Lane& lane = *lane_;
  Warp& warp = *lane.warp;
  const std::uint32_t bit = 1U << lane.in_warp;
  lane.waits_for = Operation::exit;
  warp.live &= ~bit;
  ++done_;
  for (int i = 0; i < warp.meetings; ++i) {
    const Meeting& meeting = warp.meeting[i];
    if ((meeting.mask & bit) != 0)
      fatal(ReportKind::missing_lane, meeting.site, nullptr, {lane.id},
            std::string("exited while lanes ") +
                lane_ranges(lanes_of_mask(meeting.arrived, lane.id - lane.in_warp)) + " wait for it at " +
                name_of(meeting.operation));
  }
  // The threads that are left may all be waiting already.
  if (at_barrier_ > 0 && at_barrier_ == threads_ - done_) release_barrier(nullptr);
}

void Engine::report_deadlock() {
  for (int w = 0; w < (threads_ + 31) / 32; ++w) {
    Warp& warp = *warps_[w];
    if (warp.meetings == 0) continue;
    const Meeting& meeting = warp.meeting[0];
    const std::uint32_t missing = meeting.mask & ~meeting.arrived;
    const Lane& absent = lanes_[32 * w + std::countr_zero(missing)];
    const Site elsewhere = absent.waits_at;
    add_report(ReportKind::missing_lane, key(meeting.site), key(elsewhere), lanes_of_mask(missing, 32 * w),
               "lanes " + lane_ranges(lanes_of_mask(meeting.arrived, 32 * w)) + " wait for them at " +
                   name_of(meeting.operation) + ", but they wait at " + name_of(absent.waits_for) +
                   " in line " + std::to_string(elsewhere.line()));
    return;
  }
}

void Engine::report_no_progress() {
  std::vector<int> lanes;
  const void* site = nullptr;
  for (int i = 0; i < threads_; ++i) {
    const Lane& lane = lanes_[i];
    if (lane.waits_for != Operation::log_full) continue;
    lanes.push_back(i);
    site =
        lane.warp
            ->log[static_cast<std::size_t>(Warp::log_rows - 1) * 32 + static_cast<std::size_t>(lane.in_warp)]
            .site;
  }
  add_report(ReportKind::no_progress, site, nullptr, std::move(lanes),
             "runs on without a barrier, a warp operation or an exit");
}

void Engine::drain_logs() {
  for (int w = 0; w < (threads_ + 31) / 32; ++w) {
    Warp& warp = *warps_[w];
    const int count = std::min(32, threads_ - 32 * w);
    bool full = false;
    for (int i = 0; i < count; ++i) full = full || lanes_[32 * w + i].waits_for == Operation::log_full;
    if (full) flush(warp);
  }
  for (int n = 0; n < threads_; ++n) {
    Lane& lane = lanes_[schedule_ == Schedule::reversed ? n : threads_ - 1 - n];
    if (lane.waits_for != Operation::log_full) continue;
    lane.waits_for = Operation::none;
    push_ready(lane);
  }
  log_full_ = 0;
}

void Engine::thread_fence() {
  any_fence_ = true;
  fences_[lane_->id] = epoch_;
}

void Engine::atomic_happened(const void* address) {
  if (!tracking_) return;
  const auto found = releases_.find(address);
  if (found != releases_.end())
    for (const Release& release : found->second)
      if (release.first_epoch != block_first_epoch_)
        acquired_[release.first_epoch] = {release.fence_epoch, release.thread, epoch_, lane_->id};
  if (any_fence_ && fences_[lane_->id] != 0)
    releases_[address].push_back({block_first_epoch_, fences_[lane_->id], lane_->id});
}

// ---------------------------------------------------------------------------------------------------------------
// Reports

void Engine::add_report(ReportKind kind, Site site, const Site* other, std::vector<int> lanes,
                        std::string message) {
  add_report(kind, key(site), other == nullptr ? nullptr : key(*other), std::move(lanes), std::move(message));
}

void Engine::add_report(ReportKind kind, const void* site, const void* other, std::vector<int> lanes,
                        std::string message) {
  const std::array<std::uint32_t, 3> block{block_index_.x, block_index_.y, block_index_.z};
  for (std::size_t i = 0; i < record_.reports.size(); ++i) {
    Report& report = record_.reports[i];
    if (report.kind != kind || report_sites_[i] != std::pair{site, other}) continue;
    ++report.count;
    if (report.block == block)
      for (const int lane : lanes) {
        const auto place = std::lower_bound(report.lanes.begin(), report.lanes.end(), lane);
        if (place == report.lanes.end() || *place != lane) report.lanes.insert(place, lane);
      }
    return;
  }
  if (record_.reports.size() >= max_reports && !is_fatal(kind)) return;
  Report report;
  report.kind = kind;
  report.kernel = record_.kernel;
  report.at = source_line(site);
  report.other = source_line(other);
  if (kind != ReportKind::launch_refused || site != nullptr) report.block = block;
  report.lanes = std::move(lanes);
  report.message = std::move(message);
  record_.reports.push_back(std::move(report));
  report_sites_.emplace_back(site, other);
}

void Engine::fatal(ReportKind kind, Site site, const Site* other, std::vector<int> lanes,
                   std::string message) {
  add_report(kind, site, other, std::move(lanes), std::move(message));
  throw LaunchEnded{};
}

}  // namespace gaugeblock::simt
