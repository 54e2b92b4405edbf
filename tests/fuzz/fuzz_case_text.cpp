// Any text is either refused with one line or names a case that is printed and parsed back to itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gaugeblock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Case c = parse_case(text);
    const std::string printed = print_case(c);
    require(parse_case(printed) == c);
    require(print_case(parse_case(printed)) == printed);
    require(work(c) >= 0);
    require(!families(c).empty());
  } catch (const InputError& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 1000 && message.find_first_of("\n\r\x1b") == message.npos);
  }
  return 0;
}
