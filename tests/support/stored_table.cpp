#include "stored_table.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace gaugeblock {

using Json = nlohmann::ordered_json;

int print_differences(const Json& stored, const Json& found,
                      const std::function<std::string(const Json&)>& name_of) {
  const auto by_name = [&name_of](const Json& entries) {
    std::map<std::string, Json> map;
    for (const Json& entry : entries) map[name_of(entry)] = entry;
    return map;
  };
  const auto before = by_name(stored), now = by_name(found);
  int differences = 0;
  for (const auto& [name, entry] : now) {
    const auto other = before.find(name);
    if (other == before.end()) {
      fmt::print("{}: not in the table\n", name);
      ++differences;
      continue;
    }
    const Json patch = Json::diff(other->second, entry);
    for (const Json& change : patch) {
      const Json::json_pointer place(change["path"].get<std::string>());
      fmt::print("{}: {}: expected {}, found {}\n", name, place.to_string(),
                 other->second.contains(place) ? other->second[place].dump() : "nothing",
                 change.contains("value") ? change["value"].dump() : "nothing");
    }
    differences += patch.empty() ? 0 : 1;
  }
  for (const auto& [name, entry] : before)
    if (!now.contains(name)) {
      fmt::print("{}: in the table, but not found any more\n", name);
      ++differences;
    }
  return differences;
}

std::string entries_text(const Json& list) {
  std::string text;
  for (const Json& entry : list) text += (text.empty() ? "\n  " : ",\n  ") + entry.dump();
  return "[" + text + "\n]";
}

Json stored_entries(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Json::parse(file).at(key);
}

int write_or_check(const StoredTable& table, const std::string& mode, const std::string& path) {
  const Json found = table.found();
  if (mode == "--write") {
    std::ofstream file(path, std::ios::binary);
    file << table.file_text(found);
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
    return 0;
  }
  const int differences = print_differences(stored_entries(path, table.key), found, table.name_of);
  fmt::print("{} entries, {} differences{}\n", found.size(), differences,
             differences == 0 ? "" : fmt::format("; if they are meant: {} --write {}", table.program, path));
  return differences == 0 && !found.empty() ? 0 : 1;
}

}  // namespace gaugeblock
