// What the interpreter tells about a launch: faults as structured reports, and the cost of every source line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gaugeblock::simt {

/// The kinds of fault. `is_fatal` says which of them end the launch.
enum class ReportKind {
  barrier_divergence,  ///< threads of a block wait at different barriers, or some never come to one
  missing_lane,  ///< a shuffle, vote or __syncwarp names a lane that exited, does not exist or never comes
  divergent_exchange,  ///< lanes of one mask exchange at different source lines or with different intrinsics
  lane_outside_own_mask,        ///< the calling lane is not in the mask it passes
  shuffle_source_outside_mask,  ///< a shuffle reads a lane that its mask does not name
  shared_race,                 ///< two threads touch a word of shared memory, one writes, nothing orders them
  global_race,                 ///< the same for global memory, within a block
  global_race_between_blocks,  ///< the same between two blocks of one launch
  uninitialized_shared,        ///< a read of shared memory that this block never wrote
  uninitialized_global,        ///< a read of global memory that no upload and no kernel wrote
  shared_out_of_bounds,        ///< outside the shared array
  global_out_of_bounds,        ///< outside the buffer that the pointer came from, its guard bands included
  unknown_memory,              ///< a kernel argument that points to no device buffer
  misaligned_access,           ///< an address that is no multiple of the access's size
  no_progress,     ///< the threads run on and on without a barrier, a warp operation or an exit: they spin
  launch_refused,  ///< a launch that a GPU refuses: sizes, shared memory
};

/// "shared_race", …
const char* name_of(ReportKind kind);

/// Whether a launch ends here: the faults after which a GPU hangs, traps or has nothing sensible to go on
/// with.
bool is_fatal(ReportKind kind);

struct SourceLine {
  std::string file;  ///< from the project's include root on: "gpu/recurrence/warp_per_column.cu"
  int line = 0;

  auto operator<=>(const SourceLine&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

/// One fault; repetitions at the same place are counted, not listed.
struct Report {
  ReportKind kind{};
  std::string kernel;
  SourceLine at;
  SourceLine other;  ///< the earlier access of a race, the other meeting point of a divergence
  std::array<std::uint32_t, 3> block{};  ///< of the first occurrence
  std::vector<int> lanes;                ///< linear thread indices in that block, ascending
  std::string message;                   ///< one sentence
  std::uint64_t count = 1;               ///< occurrences at this place in this launch

  /// "shared_race in tree_sum at a.cu:12, block (0,0,0), lanes 0-31: …": one line.
  std::string text() const;
};

enum class Space { shared, global, none };
enum class Access { load, store, atomic, barrier, exchange };

/// Cost of one source line's operations of one kind, over a whole launch.
struct LineCost {
  SourceLine at;
  Space space{};
  Access access{};
  int bytes = 0;               ///< per lane
  std::uint64_t requests = 0;  ///< warp instructions; barriers completed; shuffles and votes completed
  std::uint64_t units = 0;     ///< shared: wavefronts; global: 32-byte sectors; summed over the requests
};

/// Sums over all source lines.
struct LaunchCost {
  std::uint64_t global_requests = 0, global_sectors = 0;
  std::uint64_t shared_requests = 0, shared_wavefronts = 0;
  std::uint64_t barriers = 0;   ///< completed __syncthreads, one per block and barrier
  std::uint64_t exchanges = 0;  ///< completed shuffles and votes, one per group of lanes
};

struct LaunchRecord {
  std::string kernel;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint64_t dynamic_shared_bytes = 0, static_shared_bytes = 0;
  std::vector<Report> reports;
  LaunchCost cost;              ///< accesses are counted with tracking only; barriers and exchanges always
  std::vector<LineCost> lines;  ///< sorted by file and line; empty without tracking
  bool completed = false;       ///< every block ran to its end
};

/// "0-3, 7, 9-31"
std::string lane_ranges(const std::vector<int>& lanes);

}  // namespace gaugeblock::simt
