#include "gaugeblock/verify/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

namespace gaugeblock {

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

std::function<void(std::uint64_t, std::uint64_t)> progress_line(const std::string& things) {
  if (isatty(STDERR_FILENO) == 0) return {};
  auto last = std::make_shared<std::chrono::steady_clock::time_point>();
  return [last, things](std::uint64_t done, std::uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (now - *last < std::chrono::milliseconds(100) && done != of) return;
    *last = now;
    if (of == 0) {
      fmt::print(stderr, "\r{} {}", done, things);
    } else {
      constexpr std::uint64_t width = 40;
      const std::uint64_t filled = done * width / of;
      fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {}/{} {}", "", filled, "", width - filled, done, of, things);
    }
    if (done == of) fmt::print(stderr, "\n");
  };
}

}  // namespace gaugeblock
