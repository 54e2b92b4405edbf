// Runs a kernel on the CPU, one block after another, each thread of a block a fiber, and watches what it does.
//
// Rules, where CUDA leaves something open or to the hardware:
// - A launch ends at its first fatal fault (`is_fatal`); others are collected and the launch goes on.
// - __syncthreads() waits for every thread of the block that has not exited, as the hardware does. All of them
//   must be at the same source line.
// - A shuffle, vote or __syncwarp waits for every lane that its mask names. A lane that has exited or that the
//   block does not have never comes: reported, although hardware often goes on. Lanes of one shuffle or vote
//   must be at the same source line; those of one __syncwarp need not.
// - Only __syncthreads and __syncwarp order memory. Shuffles and votes do not, even where hardware would.
// - A word read by one thread and written by another in between two such orderings is a race, also when the
//   value does not change. Atomic operations do not race with each other.
// - Blocks of one launch are unordered, except where a block that has executed __threadfence() and then an
//   atomic is followed by another block's atomic on the same word.
// - Blocks run to completion one by one, so a block cannot wait for a later one. Threads of a block are
//   switched at barriers, warp operations and exit; with tracking also after a few hundred accesses, so that a
//   thread which spins until another one writes a word is reported when the word never comes. Without tracking
//   it would spin for ever.
// - What was written to shared memory is forgotten between blocks.
// - A fault at the same place is listed once per launch, with the number of occurrences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "gaugeblock/gpu/simt/report.h"

namespace gaugeblock::simt {

/// Which of the threads that could go on goes on. The blocks follow the same order.
enum class Schedule { in_order, reversed, random };

struct Options {
  Schedule schedule = Schedule::in_order;
  std::uint64_t seed = 0;  ///< of the random schedule
  bool tracking = true;    ///< watch memory and count its costs; bounds are checked without it too
};

/// What a GPU accepts: the limits of sm_90, the same on both backends.
struct LaunchLimits {
  std::uint64_t threads = 1024;
  std::array<std::uint64_t, 3> block{1024, 1024, 64};
  std::array<std::uint64_t, 3> grid{2147483647, 65535, 65535};
  std::uint64_t shared_bytes = 48 * 1024;          ///< without the opt-in
  std::uint64_t shared_opt_in_bytes = 227 * 1024;  ///< with it
};

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  bool shared_opt_in = false;  ///< the kernel was allowed more than 48 KB of shared memory
};

/// Why a GPU would refuse the launch, or nothing. `static_shared_bytes` are those the kernel declares itself.
std::optional<std::string> refusal(const LaunchShape& shape, std::uint64_t static_shared_bytes,
                                   const LaunchLimits& limits = {});

/// Runs `body` once for every thread of every block. Not from inside a kernel. Several host threads may
/// interpret at the same time, on different buffers.
LaunchRecord interpret(const std::string& kernel, const LaunchShape& shape, const Options& options,
                       void (*body)(const void*), const void* body_data);

template <class Body>
LaunchRecord interpret(const std::string& kernel, const LaunchShape& shape, const Options& options,
                       const Body& body) {
  return interpret(
      kernel, shape, options, [](const void* data) { (*static_cast<const Body*>(data))(); }, &body);
}

}  // namespace gaugeblock::simt
