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
  const auto found = [] {
    std::vector<const Variant*> variants;
    for (const Variant& variant : all_variants())
      if (variant.backend != "cuda") variants.push_back(&variant);
    return declined_problems(variants);
  };
  const auto file_text = [](const nlohmann::ordered_json& entries) {
    return fmt::format("{{\n\"format\": \"1\",\n\"variants\": {}\n}}\n", entries_text(entries));
  };
  return write_or_check({"declined_problems", "variants", found, file_text, name_of_declined}, arguments[0],
                        arguments[1]);
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
