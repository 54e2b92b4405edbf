// The text of a case, "operation:key=value,key=value,…": split, printed, and read key by key, strictly.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock {

/// A case text in its parts; order as written, no key twice.
struct CaseText {
  std::string operation;
  std::vector<std::pair<std::string, std::string>> fields;

  CaseText& add(std::string_view key, std::string_view value);
  CaseText& add(std::string_view key, Index value);
  CaseText& add(std::string_view key, std::uint64_t value);
  CaseText& add(std::string_view key, float value);
};

/// Throws InputError for anything that is not operation:key=value,... or has a key twice. "operation" and
/// "operation:" alone are legal: every key has its default.
CaseText parse_case_text(std::string_view text);
std::string print_case_text(const CaseText& text);

/// Largest extent of a tensor in a case: subscripts are 32-bit words of the random numbers' counter.
inline constexpr Index largest_extent = std::numeric_limits<std::uint32_t>::max();

/// The fields of a case text, read by key. Every error is an InputError with one line that says what was
/// expected and what was found.
class CaseFields {
 public:
  /// Refuses keys that are not legal. `text` and `legal_keys` outlive the reader.
  CaseFields(const CaseText& text, const std::vector<std::string_view>& legal_keys);

  /// An integer in [smallest, largest_extent].
  Index extent(std::string_view key, Index fallback, Index smallest = 1) const;
  /// A 64-bit integer without sign.
  std::uint64_t unsigned_integer(std::string_view key, std::uint64_t fallback) const;
  /// A finite float32.
  float number(std::string_view key, float fallback) const;
  /// The value as written, or `fallback`.
  std::string_view word(std::string_view key, std::string_view fallback) const;
  /// The position in `names` of the value, or `fallback`.
  std::size_t choice(std::string_view key, const std::vector<std::string_view>& names,
                     std::size_t fallback) const;

 private:
  const std::string* find(std::string_view key) const;
  const CaseText& text_;
};

/// Whole-text conversions by std::from_chars. `what` names the value in the message: "B", "X of
/// gate=const:X".
Index parse_index(std::string_view text, std::string_view what, Index smallest, Index largest);
std::uint64_t parse_unsigned(std::string_view text, std::string_view what);
float parse_float(std::string_view text, std::string_view what);

/// The shortest text that parse_float turns back into the same float.
std::string float_text(float value);

/// "a, b, c"
std::string listed(const std::vector<std::string_view>& names);

/// " (did you mean 'near_one'?)" for the legal name nearest to `found`, or nothing when none is near.
std::string suggestion(std::string_view found, const std::vector<std::string_view>& legal);

/// Throws "expected KIND: one of a, b, c; found 'x' (did you mean …?)".
[[noreturn]] void refuse_name(std::string_view kind, std::string_view found,
                              const std::vector<std::string_view>& legal);

}  // namespace gaugeblock
