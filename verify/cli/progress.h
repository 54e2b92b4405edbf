// What is said on stderr beside the work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gaugeblock {

/// A line on stderr. Nobody reading it is no failure of the work.
void say(const std::string& line);

/// Shows how many of how many `things` are done, on a terminal; nothing when stderr is piped. With `of` = 0
/// it is not known how many there are.
std::function<void(std::uint64_t done, std::uint64_t of)> progress_line(const std::string& things);

}  // namespace gaugeblock
