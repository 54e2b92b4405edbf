#include "gaugeblock/verify/files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {
namespace {

static_assert(std::endian::native == std::endian::little, "the data of a file is copied as it is");

using Bytes = std::uint64_t;  // a number of bytes, or an offset in bytes

constexpr Bytes length_field_bytes = 8;
constexpr Bytes longest_header_bytes = 100'000'000;  // the format's limit

// Limits of this reader, far beyond any real file. They keep a hostile header from filling the memory.
constexpr Bytes longest_token_bytes = 1 << 20;
constexpr Bytes most_text_bytes = 16 << 20;  // names and metadata together
constexpr std::size_t most_entries = 1 << 16;
constexpr std::size_t most_dimensions = 32;

/// Where the bytes of a file come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual Bytes size_bytes() const = 0;
  /// Precondition: offset + count <= size_bytes().
  virtual void read(Bytes offset, void* to, std::size_t count_bytes) = 0;
};

class MemorySource : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Bytes size_bytes() const override { return bytes_.size(); }
  void read(Bytes offset, void* to, std::size_t count_bytes) override {
    if (count_bytes > 0) std::memcpy(to, bytes_.data() + offset, count_bytes);
  }

 private:
  std::span<const std::byte> bytes_;
};

class DiskSource : public Source {
 public:
  DiskSource(const std::filesystem::path& path, const std::string& name) : name_(name) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) throw InputError(name_ + ": expected a file; found nothing there");
    if (!std::filesystem::is_regular_file(status)) {
      const bool directory = std::filesystem::is_directory(status);
      throw InputError(fmt::format("{}: expected a regular file; found {}", name_,
                                   directory ? "a directory" : "a device or pipe"));
    }
    size_bytes_ = std::filesystem::file_size(path, error);
    if (!error) stream_.open(path, std::ios::binary);
    if (error || !stream_) {
      const std::string reason = error ? error.message() : std::string(std::strerror(errno));
      throw InputError(fmt::format("{}: expected a readable file: {}", name_, reason));
    }
  }

  Bytes size_bytes() const override { return size_bytes_; }
  void read(Bytes offset, void* to, std::size_t count_bytes) override {
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(static_cast<char*>(to), static_cast<std::streamsize>(count_bytes));
    if (!stream_)
      throw InputError(fmt::format("{}: reading {} bytes at byte {} failed", name_, count_bytes, offset));
  }

 private:
  std::string name_;
  std::ifstream stream_;
  Bytes size_bytes_ = 0;
};

/// The characters of the header, a block at a time, each run of white space between tokens given as one
/// space. The parser never sees a token, a run of spaces or a zero byte that would make it hold the whole
/// header.
class HeaderText {
 public:
  HeaderText(Source& source, Bytes length_bytes, const std::string& name)
      : source_(source), name_(name), next_(length_field_bytes), end_(length_field_bytes + length_bytes) {
    advance();
  }

  bool at_end() const { return !current_; }
  char current() const { return *current_; }
  /// Offset in the file of the current character.
  Bytes offset() const { return next_ - (current_ ? 1 : 0); }

  void advance() {
    current_.reset();
    if (next_ == end_) return;
    const char c = take();
    if (c == '\0') refuse("a byte of value 0");
    if (in_string_) {
      if (!escaped_ && c == '"') in_string_ = false;
      escaped_ = !escaped_ && c == '\\';
      ++token_bytes_;
    } else if (is_space(c)) {
      while (next_ < end_ && is_space(peek())) ++next_;
      token_bytes_ = 0;
    } else if (std::string_view("{}[]:,").find(c) != std::string_view::npos) {
      token_bytes_ = 0;
    } else {
      if (c == '"') in_string_ = true;
      ++token_bytes_;
    }
    if (token_bytes_ > longest_token_bytes)
      refuse(fmt::format("one longer than {} bytes", longest_token_bytes));
    current_ = c;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  char peek() {
    if (next_ >= block_start_ + block_.size()) {
      constexpr Bytes block_bytes = 1 << 16;
      block_.resize(std::min(block_bytes, end_ - next_));
      source_.read(next_, block_.data(), block_.size());
      block_start_ = next_;
    }
    return block_[next_ - block_start_];
  }

  char take() {
    const char c = peek();
    ++next_;
    return c;
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw InputError(
        fmt::format("{}: header, byte {}: expected a JSON token; found {}", name_, next_ - 1, found));
  }

  Source& source_;
  const std::string& name_;
  Bytes next_;
  Bytes end_;
  std::string block_;
  Bytes block_start_ = 0;
  std::optional<char> current_;
  bool in_string_ = false;
  bool escaped_ = false;
  Bytes token_bytes_ = 0;
};

/// HeaderText as the JSON parser wants it.
class HeaderIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit HeaderIterator(HeaderText* text = nullptr) : text_(text) {}
  char operator*() const { return text_->current(); }
  HeaderIterator& operator++() {
    text_->advance();
    return *this;
  }
  void operator++(int) { text_->advance(); }
  bool operator==(const HeaderIterator& other) const { return at_end() == other.at_end(); }

 private:
  bool at_end() const { return text_ == nullptr || text_->at_end(); }
  HeaderText* text_;
};

/// What the header says of one tensor.
struct Entry {
  std::optional<std::string> dtype;
  std::optional<std::vector<Index>> shape;
  std::optional<std::vector<Bytes>> data_offsets;

  Bytes begin() const { return data_offsets->front(); }
  Bytes end() const { return data_offsets->back(); }
  Bytes value_bytes() const { return *dtype == "F32" ? sizeof(float) : sizeof(double); }
};

/// Takes the header as the JSON parser comes upon it and refuses the first thing out of place. No depth of
/// nesting matters: nothing deeper than the three levels of the format is ever entered.
class HeaderParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderParser(const HeaderText& text, const std::string& name) : text_(text), name_(name) {}

  std::map<std::string, std::string> metadata;
  std::map<std::string, Entry> entries;

  bool null() override { refuse_value("null"); }
  bool boolean(bool value) override { refuse_value(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { refuse_value(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { refuse_value(cut(text)); }
  bool binary(binary_t& /*value*/) override { refuse_value("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
        refuse_value(std::to_string(value));
      if (entry_->shape->size() == most_dimensions)
        refuse(fmt::format("expected at most {} dimensions; found more", most_dimensions));
      entry_->shape->push_back(static_cast<Index>(value));
    } else if (place_ == Place::offsets) {
      if (entry_->data_offsets->size() == 2) refuse("expected two offsets; found more");
      entry_->data_offsets->push_back(value);
    } else {
      refuse_value(std::to_string(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      count_text(value);
      metadata[key_] = std::move(value);
    } else if (place_ == Place::entry && field_ == "dtype") {
      if (value != "F32" && value != "F64")
        refuse(fmt::format("expected \"F32\" or \"F64\", the types read here; found {}", quoted_text(value)));
      entry_->dtype = std::move(value);
    } else {
      refuse_value(quoted_text(value));
    }
    return true;
  }

  bool key(string_t& key) override {
    if (place_ == Place::entry) {
      field_ = std::move(key);
      const bool again = field_ == "dtype"          ? entry_->dtype.has_value()
                         : field_ == "shape"        ? entry_->shape.has_value()
                         : field_ == "data_offsets" ? entry_->data_offsets.has_value()
                                                    : unknown_field();
      if (again) refuse("expected it once; found it twice");
      return true;
    }
    count_text(key);
    if (metadata.size() + entries.size() == most_entries)
      refuse(fmt::format("expected at most {} tensors and metadata together; found more", most_entries));
    key_ = std::move(key);
    if (place_ == Place::metadata) {
      if (metadata.contains(key_)) refuse("expected it once; found it twice");
    } else if (key_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) refuse("expected it once; found it twice");
    } else {
      const auto [position, is_new] = entries.try_emplace(key_);
      entry_ = &position->second;
      field_.clear();
      if (!is_new) refuse("expected it once; found it twice");
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (place_ == Place::start) {
      place_ = Place::file;
    } else if (place_ == Place::file) {
      place_ = key_ == "__metadata__" ? Place::metadata : Place::entry;
    } else {
      refuse_value("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      field_.clear();
      if (!entry_->dtype) refuse("expected a dtype; found none");
      if (!entry_->shape) refuse("expected a shape; found none");
      if (!entry_->data_offsets) refuse("expected data_offsets; found none");
    }
    place_ = place_ == Place::file ? Place::end : Place::file;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ == Place::entry && field_ == "shape") {
      entry_->shape.emplace();
      place_ = Place::shape;
    } else if (place_ == Place::entry && field_ == "data_offsets") {
      entry_->data_offsets.emplace();
      place_ = Place::offsets;
    } else {
      refuse_value("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && entry_->data_offsets->size() != 2)
      refuse(fmt::format("expected two offsets; found {}", entry_->data_offsets->size()));
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& last_token,
                   const nlohmann::detail::exception& /*error*/) override {
    throw InputError(fmt::format("{}: header, before byte {}: expected valid JSON; found {}", name_,
                                 text_.offset(), text_.at_end() ? "its end" : quoted_text(last_token)));
  }

 private:
  enum class Place { start, file, entry, shape, offsets, metadata, end };

  static std::string cut(const std::string& number) {
    return number.size() <= 40 ? number : number.substr(0, 40) + "...";
  }

  static bool is_field(const std::string& name) {
    return name == "dtype" || name == "shape" || name == "data_offsets";
  }

  void count_text(const std::string& text) {
    text_bytes_ += text.size();
    if (text_bytes_ > most_text_bytes)
      throw InputError(
          fmt::format("{}: header, byte {}: expected at most {} bytes of names and metadata; found more",
                      name_, text_.offset(), most_text_bytes));
  }

  [[noreturn]] bool unknown_field() {
    refuse("expected only dtype, shape and data_offsets; found it beside them");
  }

  [[noreturn]] void refuse_value(const std::string& found) {
    const char* expected = "an object with dtype, shape and data_offsets";
    if (place_ == Place::metadata) expected = "a string";
    if (place_ == Place::file && key_ == "__metadata__") expected = "an object of strings";
    if (place_ == Place::shape || place_ == Place::offsets) expected = "whole numbers from 0 to 2^63-1";
    if (place_ == Place::entry) expected = field_ == "dtype" ? "a string" : "an array of whole numbers";
    if (place_ == Place::start) expected = "an object";
    refuse(fmt::format("expected {}; found {}", expected, found));
  }

  [[noreturn]] void refuse(const std::string& what) {
    std::string where = fmt::format("header, byte {}", text_.offset());
    if (place_ == Place::metadata) {
      where = fmt::format("metadata {}", quoted_text(key_));
    } else if (place_ != Place::start && place_ != Place::end) {
      where = key_ == "__metadata__" ? key_ : fmt::format("tensor {}", quoted_text(key_));
      if (!field_.empty() && place_ != Place::file)
        where += ": " + (is_field(field_) ? field_ : quoted_text(field_));
    }
    throw InputError(fmt::format("{}: {}: {}", name_, where, what));
  }

  const HeaderText& text_;
  const std::string& name_;
  Place place_ = Place::start;
  std::string key_;    // the tensor or the metadata key at hand
  std::string field_;  // the tensor's field at hand
  Entry* entry_ = nullptr;
  bool has_metadata_ = false;
  Bytes text_bytes_ = 0;
};

/// The length of the header, checked against the format's limit and the size of the file.
Bytes header_bytes(Source& source, const std::string& name) {
  if (source.size_bytes() < length_field_bytes)
    throw InputError(
        fmt::format("{}: expected 8 bytes with the length of the header; found a file of {} bytes", name,
                    source.size_bytes()));
  Bytes length = 0;
  source.read(0, &length, sizeof length);
  if (length > longest_header_bytes)
    throw InputError(fmt::format("{}: header length: expected at most {} bytes; found {}", name,
                                 longest_header_bytes, length));
  const Bytes rest = source.size_bytes() - length_field_bytes;
  if (length > rest)
    throw InputError(fmt::format("{}: header length: expected at most the {} bytes that follow it; found {}",
                                 name, rest, length));
  char first = '\0';
  if (length > 0) source.read(length_field_bytes, &first, 1);
  if (first != '{')
    throw InputError(fmt::format("{}: header, byte 8: expected it to begin with \"{{\"; found {}", name,
                                 length == 0 ? "a header of 0 bytes" : quoted_text({&first, 1})));
  return length;
}

/// Bytes that a tensor of this shape takes.
Bytes tensor_bytes(const Entry& entry, const std::string& where) {
  const Index elements = element_count(*entry.shape, where);
  Bytes bytes = 0;
  if (__builtin_mul_overflow(static_cast<Bytes>(elements), entry.value_bytes(), &bytes))
    throw InputError(
        fmt::format("{}: shape: expected fewer than 2^64 bytes; found {}", where, shape_text(*entry.shape)));
  return bytes;
}

/// Every tensor as long as its shape says, and all of them together exactly the data.
void check_offsets(const std::map<std::string, Entry>& entries, Bytes data_bytes, const std::string& name) {
  std::vector<const std::pair<const std::string, Entry>*> sorted;
  for (const auto& item : entries) {
    const auto& [tensor, entry] = item;
    const std::string where = fmt::format("{}: tensor {}", name, quoted_text(tensor));
    const std::string offsets = fmt::format("[{},{}]", entry.begin(), entry.end());
    if (entry.begin() > entry.end())
      throw InputError(fmt::format("{}: data_offsets: expected the first to be at most the second; found {}",
                                   where, offsets));
    if (entry.end() > data_bytes)
      throw InputError(fmt::format("{}: data_offsets: expected them within the {} bytes of data; found {}",
                                   where, data_bytes, offsets));
    const Bytes bytes = tensor_bytes(entry, where);
    if (entry.end() - entry.begin() != bytes)
      throw InputError(fmt::format("{}: data_offsets: expected {} bytes for {} {}; found {}", where, bytes,
                                   *entry.dtype, shape_text(*entry.shape), offsets));
    sorted.push_back(&item);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return *a->second.data_offsets < *b->second.data_offsets; });
  Bytes reached = 0;
  for (const auto* item : sorted) {
    const auto& [tensor, entry] = *item;
    if (entry.begin() != reached)
      throw InputError(fmt::format("{}: tensor {}: data_offsets: expected it to begin at {}; found {} ({})",
                                   name, quoted_text(tensor), reached, entry.begin(),
                                   entry.begin() > reached ? "a gap" : "an overlap"));
    reached = entry.end();
  }
  if (reached != data_bytes)
    throw InputError(
        fmt::format("{}: data: expected it to end with the last tensor at {}; found {} bytes more", name,
                    reached, data_bytes - reached));
}

template <class Value>
FileTensor read_tensor(Source& source, const Entry& entry, Bytes data_start) {
  std::vector<Value> values((entry.end() - entry.begin()) / sizeof(Value));
  source.read(data_start + entry.begin(), values.data(), values.size() * sizeof(Value));
  return {*entry.shape, std::move(values)};
}

SafetensorsFile parse(Source& source, const std::string& name) {
  const Bytes length = header_bytes(source, name);
  HeaderText text(source, length, name);
  HeaderParser header(text, name);
  nlohmann::json::sax_parse(HeaderIterator(&text), HeaderIterator(), &header);

  const Bytes data_start = length_field_bytes + length;
  const Bytes data_bytes = source.size_bytes() - data_start;
  check_offsets(header.entries, data_bytes, name);
  // A file may have holes and be larger than the memory.
  require_memory(static_cast<double>(data_bytes) / sizeof(float), name + ": data");

  SafetensorsFile file{name, std::move(header.metadata), {}};
  for (const auto& [tensor, entry] : header.entries)
    file.tensors.emplace(tensor, *entry.dtype == "F32" ? read_tensor<float>(source, entry, data_start)
                                                       : read_tensor<double>(source, entry, data_start));
  return file;
}

std::string json_string(const std::string& text, const std::string& name) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw InputError(
        fmt::format("{}: expected a name or metadata in UTF-8; found {}", name, quoted_text(text)));
  }
}

/// The tensors in the order of their data.
std::vector<const std::pair<const std::string, FileTensor>*> data_order(const SafetensorsFile& file) {
  std::vector<const std::pair<const std::string, FileTensor>*> order;
  for (const bool float64 : {true, false})
    for (const auto& item : file.tensors)
      if (std::holds_alternative<std::vector<double>>(item.second.values) == float64) order.push_back(&item);
  return order;
}

/// Gives the bytes of the file to `sink(address, count_bytes)`, piece by piece.
template <class Sink>
void emit(const SafetensorsFile& file, Sink&& sink) {
  std::string header = "{";
  if (!file.metadata.empty()) {
    header += "\"__metadata__\":";
    char separator = '{';
    for (const auto& [key, value] : file.metadata) {
      header += separator + json_string(key, file.name) + ":" + json_string(value, file.name);
      separator = ',';
    }
    header += "}";
  }
  Bytes offset = 0;
  const auto order = data_order(file);
  for (const auto* item : order) {
    const auto& [tensor, content] = *item;
    const auto [dtype, elements, bytes] = std::visit(
        [](const auto& values) {
          const bool float32 = sizeof values[0] == sizeof(float);
          return std::tuple(float32 ? "F32" : "F64", values.size(), values.size() * sizeof values[0]);
        },
        content.values);
    const std::string where = fmt::format("{}: tensor {}", file.name, quoted_text(tensor));
    if (tensor == "__metadata__")
      throw InputError(where + ": expected another name; the format keeps this one");
    if (static_cast<std::size_t>(element_count(content.shape, where)) != elements)
      throw InputError(
          fmt::format("{}: expected values for {}; found {}", where, shape_text(content.shape), elements));
    if (header.size() > 1) header += ",";
    header += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          json_string(tensor, file.name), dtype, fmt::join(content.shape, ","), offset,
                          offset + bytes);
    offset += bytes;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > longest_header_bytes)
    throw InputError(fmt::format("{}: header length: expected at most {} bytes; found {}", file.name,
                                 longest_header_bytes, header.size()));

  const Bytes length = header.size();
  sink(&length, sizeof length);
  sink(header.data(), header.size());
  for (const auto* item : order)
    std::visit([&](const auto& values) { sink(values.data(), values.size() * sizeof values[0]); },
               item->second.values);
}

/// A C stream that is closed in any case, and removed when it was not finished.
class OutputFile {
 public:
  /// `temporary`: must not exist yet, and goes when it was not finished.
  OutputFile(std::filesystem::path path, bool temporary)
      : path_(std::move(path)),
        temporary_(temporary),
        stream_(std::fopen(path_.c_str(), temporary ? "wbx" : "wb")) {
    if (stream_ == nullptr) fail();
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (stream_ != nullptr) std::fclose(stream_);
    if (temporary_) std::remove(path_.c_str());
  }

  void write(const void* from, std::size_t count_bytes) {
    if (count_bytes > 0 && std::fwrite(from, 1, count_bytes, stream_) != count_bytes) fail();
  }
  void close() {
    if (std::fclose(std::exchange(stream_, nullptr)) != 0) fail();
  }
  void rename_to(const std::filesystem::path& path) {
    if (std::rename(path_.c_str(), path.c_str()) != 0) fail();
    temporary_ = false;
  }

 private:
  [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category()); }

  std::filesystem::path path_;
  bool temporary_;
  std::FILE* stream_;
};

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const std::string name = path_text(path);
  try {
    DiskSource source(path, name);
    return parse(source, name);
  } catch (const std::bad_alloc&) {
    throw InputError(name + ": expected a file that fits into memory; found a larger one");
  }
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  MemorySource source(bytes);
  return parse(source, name);
}

std::string print_safetensors(const SafetensorsFile& file) {
  std::string bytes;
  emit(file, [&](const void* from, std::size_t count_bytes) {
    if (count_bytes > 0) bytes.append(static_cast<const char*>(from), count_bytes);
  });
  return bytes;
}

void write_safetensors(const SafetensorsFile& file, const std::filesystem::path& path) {
  try {
    std::error_code missing;
    const auto status = std::filesystem::status(path, missing);
    const bool replaced = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
    // A link stays a link: what it points to is replaced.
    const auto target = std::filesystem::is_symlink(std::filesystem::symlink_status(path, missing))
                            ? std::filesystem::weakly_canonical(path)
                            : path;
    auto written = target;
    if (replaced) written += fmt::format(".{}.part", getpid());
    OutputFile output(written, replaced);
    emit(file, [&](const void* from, std::size_t count_bytes) { output.write(from, count_bytes); });
    output.close();
    if (replaced) output.rename_to(target);
  } catch (const std::system_error& error) {
    throw InputError(
        fmt::format("{}: expected a file that can be written: {}", path_text(path), error.code().message()));
  }
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, longest)) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c >= ' ' && c <= '~')
      result += c;
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > longest ? "\"..." : "\"");
}

std::string path_text(const std::filesystem::path& path) {
  std::string text = path.string();
  for (char& c : text)
    if ((c >= '\0' && c < ' ') || c == '\x7f') c = '?';
  return text;
}

}  // namespace gaugeblock
