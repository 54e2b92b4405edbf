// A table of JSON entries in the source tree that a program can make again: written, or compared entry by
// entry.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gaugeblock {

/// The entries of `stored` and `found` that differ, each printed on one line with what was expected and what
/// was found; how many. Entries belong together when `name_of` names them alike.
int print_differences(const nlohmann::ordered_json& stored, const nlohmann::ordered_json& found,
                      const std::function<std::string(const nlohmann::ordered_json&)>& name_of);

/// `list` with one entry a line, so that a change of one entry is a change of its lines.
std::string entries_text(const nlohmann::ordered_json& list);

/// The array under `key` of the file. Throws std::runtime_error when the file cannot be read.
nlohmann::ordered_json stored_entries(const std::string& path, const std::string& key);

/// A table, and the program that makes it.
struct StoredTable {
  std::string program;
  std::string key;  ///< of the entries in the file
  std::function<nlohmann::ordered_json()> found;
  std::function<std::string(const nlohmann::ordered_json&)> file_text;
  std::function<std::string(const nlohmann::ordered_json&)> name_of;
};

/// `mode` "--write": writes the table to the file. "--check": compares and prints. The program's exit code: 0; 1
/// when anything differs or nothing was found. Throws std::runtime_error when the file cannot be read or written.
int write_or_check(const StoredTable& table, const std::string& mode, const std::string& path);

}  // namespace gaugeblock
