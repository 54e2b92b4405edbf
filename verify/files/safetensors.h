// safetensors files, read strictly: a damaged file is refused, never half understood.
//
//     8 bytes    N, the length of the header: little-endian, at most 100 000 000
//     N bytes    JSON that begins with `{`:
//                {"__metadata__": {"key": "value"},
//                 "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}}
//     the rest   the data, C order, little-endian; offsets count from here and tile it: no gap, no overlap,
//                no rest
//
// Every refusal is an InputError of one line: the file, the tensor or the offset, what was expected and what
// was found. Nothing is allocated because a file says so: every size is checked against the size of the file
// first.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// A tensor of a file, C order. Only float32 and float64 are read; any other type is refused by its name.
struct FileTensor {
  std::vector<Index> shape;
  std::variant<std::vector<float>, std::vector<double>> values;

  bool operator==(const FileTensor&) const = default;
};

struct SafetensorsFile {
  std::string name;  ///< what messages call it: the path it came from
  std::map<std::string, std::string> metadata;
  std::map<std::string, FileTensor> tensors;
};

/// Reads a file. Throws InputError.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Reads the bytes of a file that messages call `name`. Throws InputError.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

/// The bytes of a file, the same on every run: tensors in the order of their names, float64 before float32 so
/// that every value is aligned; the header padded with spaces to a multiple of 8 bytes. Throws InputError for
/// names that are not UTF-8 and for values that do not fill their shape.
std::string print_safetensors(const SafetensorsFile& file);

/// Writes `file` to `path` under a temporary name and renames it, so that no half-written file is ever seen
/// there. What exists and is no regular file (/dev/stdout) is written to directly. Throws InputError.
void write_safetensors(const SafetensorsFile& file, const std::filesystem::path& path);

/// `text` in double quotes for a message: cut when long, and anything but printable ASCII escaped.
std::string quoted_text(std::string_view text);

/// A path for a message: its control characters replaced, so that the message stays one line.
std::string path_text(const std::filesystem::path& path);

}  // namespace gaugeblock
