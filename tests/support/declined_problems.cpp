// What every variant declines, as a table that changes only when a variant's limits do.
//
//     declined_problems --write FILE    asks every variant and writes the table
//     declined_problems --check FILE    asks and compares; exit code 1 when anything differs
#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "declined.h"
#include "stored_table.h"

namespace {

using namespace gaugeblock;

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || (arguments[0] != "--write" && arguments[0] != "--check")) {
    fmt::print(stderr, "usage: declined_problems --write FILE | --check FILE\n");
    return 2;
  }
  const std::string& path = arguments[1];
  std::vector<const Variant*> variants;
  for (const Variant& variant : all_variants())
    if (variant.backend != "cuda") variants.push_back(&variant);
  const nlohmann::ordered_json found = declined_problems(variants);
  if (arguments[0] == "--write") {
    write_text(path, fmt::format("{{\n\"format\": \"1\",\n\"variants\": {}\n}}\n", entries_text(found)));
    return 0;
  }
  const int differences = print_differences(stored_entries(path, "variants"), found, name_of_declined);
  fmt::print("{} entries, {} differences{}\n", found.size(), differences,
             differences == 0 ? "" : "; if they are meant: declined_problems --write " + path);
  return differences == 0 && !found.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "declined_problems: {}\n", error.what());
    return 3;
  }
}
