// What the interpreter knows about memory: which buffers exist, which words were written, who touched each
// word last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gaugeblock::simt {

/// History of one 4-byte word within one launch: its last write, and the reads since that a write could race
/// with. Epoch 0 means never. The meaning of clocks and epochs: engine.h.
struct Cell {
  const void* write_site = nullptr;
  const void* read_site = nullptr;
  std::uint32_t write_epoch = 0;
  std::uint32_t write_clock = 0;
  std::uint32_t read_epoch = 0;
  std::uint32_t read_clock = 0;
  std::uint32_t read_mask = 0;     ///< lanes of read_warp that read since
  std::uint16_t write_thread = 0;  ///< linear thread index, with the flags below
  std::uint16_t read_warp = 0;     ///< warp index, with the flags below

  static constexpr std::uint16_t thread_mask = 0x03ff;
  static constexpr std::uint16_t atomic = 0x8000;  ///< write_thread: the last write was atomic
  static constexpr std::uint16_t atomic_in_several_warps = 0x4000;  ///< write_thread: and not the only one
  static constexpr std::uint16_t warp_mask = 0x003f;
  static constexpr std::uint16_t read_by_several_warps = 0x4000;  ///< read_warp
  static constexpr std::uint16_t read_by_other_blocks = 0x8000;  ///< read_warp: earlier blocks of this launch
};

/// One device buffer. Only `begin` to `begin + bytes` may be touched by a kernel; the rest is guard bands.
struct Region {
  std::string name;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::uintptr_t whole_begin = 0;
  std::size_t whole_bytes = 0;
  std::vector<std::uint8_t> written;  ///< a flag for every word: an upload or a kernel wrote it
  std::vector<Cell> cells;            ///< empty until the first launch with tracking
  std::uint64_t launch = 0;           ///< the launch that `cells` describe
};

/// Makes a buffer known. `begin` is a multiple of 4. The region stays where it is until it is removed.
/// Safe from several host threads; a buffer itself belongs to one host thread at a time.
Region* add_region(std::string name, void* whole_begin, std::size_t whole_bytes, void* begin,
                   std::size_t bytes);
void remove_region(Region* region);

/// The buffer whose payload or guard bands hold `address`, or null.
Region* find_region(const void* address);

/// Marks bytes as written, as an upload does. The range lies in the payload.
void mark_written(Region& region, const void* begin, std::size_t bytes);

/// Marks bytes as never written; the range may reach into the guard bands.
void mark_unwritten(Region& region, const void* begin, std::size_t bytes);

}  // namespace gaugeblock::simt
