// Any bytes are either refused with one line or a file that is written back and read again unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "gaugeblock/verify/cases/errors.h"
#include "problem_bytes.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// What `action` gives; a refusal is one line.
template <class Action>
void unless_refused(Action&& action) {
  try {
    action();
  } catch (const gaugeblock::InputError& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 1000 && message.find_first_of("\n\r\x1b") == message.npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gaugeblock;
  unless_refused([&] {
    const SafetensorsFile file = parse_safetensors(std::as_bytes(std::span(data, size)), "file");
    const std::string printed = print_safetensors(file);
    const SafetensorsFile again = parse_safetensors(std::as_bytes(std::span(printed)), "printed");
    require(print_safetensors(again) == printed);
    unless_refused([&] {
      const SafetensorsFile written = problem_file(read_everything(file));
      require(print_safetensors(problem_file(read_problem(written))) == print_safetensors(written));
    });
  });
  return 0;
}
