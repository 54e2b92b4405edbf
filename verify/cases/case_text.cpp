#include "gaugeblock/verify/cases/case_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

bool same_letter(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return lower(a) == lower(b);
}

/// Number of letters to insert, delete, exchange or swap with a neighbour to turn `a` into `b`, whatever
/// their case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t exchange = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + exchange});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// What the user wrote, on one line and of bearable length, however many of its bytes have to be spelt out.
std::string quoted(std::string_view found) {
  constexpr std::size_t longest = 60;
  std::string text;
  for (const char c : found) {
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    const std::string spelt =
        printable ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    if (text.size() + spelt.size() > longest) return "'" + text + "...'";
    text += spelt;
  }
  return "'" + text + "'";
}

template <class Number>
std::errc convert(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stopped != end) return std::errc::invalid_argument;
  return error;
}

}  // namespace

CaseText& CaseText::add(std::string_view key, std::string_view value) {
  fields.emplace_back(key, value);
  return *this;
}
CaseText& CaseText::add(std::string_view key, Index value) {
  return add(key, fmt::format("{}", value));
}
CaseText& CaseText::add(std::string_view key, std::uint64_t value) {
  return add(key, fmt::format("{}", value));
}
CaseText& CaseText::add(std::string_view key, float value) {
  return add(key, float_text(value));
}

CaseText parse_case_text(std::string_view text) {
  CaseText parsed;
  const std::size_t colon = text.find(':');
  parsed.operation = text.substr(0, colon);
  if (parsed.operation.empty())
    throw InputError(fmt::format("case: expected operation:key=value,...; found {}", quoted(text)));
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view field = rest.substr(0, comma);
    if (comma != std::string_view::npos && comma + 1 == rest.size())
      throw InputError(
          fmt::format("case: expected key=value after the last comma; found nothing in {}", quoted(text)));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == field.size())
      throw InputError(fmt::format("case: expected key=value; found {}", quoted(field)));
    const std::string_view key = field.substr(0, equals);
    for (const auto& [earlier, value] : parsed.fields)
      if (earlier == key)
        throw InputError(fmt::format("case: expected each key once; found {} twice, {} = {} and {}",
                                     quoted(key), quoted(earlier), quoted(value), quoted(field)));
    parsed.add(key, field.substr(equals + 1));
  }
  return parsed;
}

std::string print_case_text(const CaseText& text) {
  std::string printed = text.operation;
  char separator = ':';
  for (const auto& [key, value] : text.fields) {
    printed += separator;
    printed += fmt::format("{}={}", key, value);
    separator = ',';
  }
  return printed;
}

CaseFields::CaseFields(const CaseText& text, const std::vector<std::string_view>& legal_keys) : text_(text) {
  for (const auto& [key, value] : text.fields)
    if (std::find(legal_keys.begin(), legal_keys.end(), key) == legal_keys.end())
      refuse_name(fmt::format("key of {}", text.operation), key, legal_keys);
}

const std::string* CaseFields::find(std::string_view key) const {
  for (const auto& [present, value] : text_.fields)
    if (present == key) return &value;
  return nullptr;
}

Index CaseFields::extent(std::string_view key, Index fallback, Index smallest) const {
  const std::string* value = find(key);
  return value == nullptr ? fallback : parse_index(*value, key, smallest, largest_extent);
}

std::uint64_t CaseFields::unsigned_integer(std::string_view key, std::uint64_t fallback) const {
  const std::string* value = find(key);
  return value == nullptr ? fallback : parse_unsigned(*value, key);
}

float CaseFields::number(std::string_view key, float fallback) const {
  const std::string* value = find(key);
  return value == nullptr ? fallback : parse_float(*value, key);
}

std::string_view CaseFields::word(std::string_view key, std::string_view fallback) const {
  const std::string* value = find(key);
  return value == nullptr ? fallback : std::string_view(*value);
}

std::size_t CaseFields::choice(std::string_view key, const std::vector<std::string_view>& names,
                               std::size_t fallback) const {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  const auto found = std::find(names.begin(), names.end(), *value);
  if (found == names.end()) refuse_name(key, *value, names);
  return static_cast<std::size_t>(found - names.begin());
}

Index parse_index(std::string_view text, std::string_view what, Index smallest, Index largest) {
  Index number = 0;
  const std::errc error = convert(text, number);
  if (error == std::errc::invalid_argument)
    throw InputError(fmt::format("{}: expected an integer from {} to {}; found {}", what, smallest, largest,
                                 quoted(text)));
  if (error != std::errc() || number < smallest || number > largest)
    throw InputError(fmt::format("{}: expected an integer from {} to {}; found {}, which is out of range",
                                 what, smallest, largest, quoted(text)));
  return number;
}

std::uint64_t parse_unsigned(std::string_view text, std::string_view what) {
  std::uint64_t number = 0;
  const std::errc error = convert(text, number);
  if (error == std::errc::invalid_argument)
    throw InputError(fmt::format("{}: expected an integer from 0 to {}; found {}", what,
                                 std::numeric_limits<std::uint64_t>::max(), quoted(text)));
  if (error != std::errc())
    throw InputError(fmt::format("{}: expected an integer from 0 to {}; found {}, which is out of range",
                                 what, std::numeric_limits<std::uint64_t>::max(), quoted(text)));
  return number;
}

float parse_float(std::string_view text, std::string_view what) {
  float number = 0;
  const std::errc error = convert(text, number);
  if (error == std::errc::result_out_of_range)
    throw InputError(fmt::format(
        "{}: expected a number that float32 can hold; found {}, which is out of range", what, quoted(text)));
  if (error != std::errc() || !std::isfinite(number))
    throw InputError(
        fmt::format("{}: expected a finite number such as 0.9 or 6.5e-12; found {}", what, quoted(text)));
  return number;
}

std::string float_text(float value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("?");
}

std::string listed(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string suggestion(std::string_view found, const std::vector<std::string_view>& legal) {
  // More than half of the letters wrong is another word; a long text cannot be near any name.
  if (found.size() > 40) return "";
  std::string_view nearest;
  std::size_t least = found.size() / 2 + 1;
  for (const std::string_view name : legal) {
    const std::size_t distance = edit_distance(found, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest);
}

void refuse_name(std::string_view kind, std::string_view found, const std::vector<std::string_view>& legal) {
  throw InputError(fmt::format("{}: expected one of {}; found {}{}", kind, listed(legal), quoted(found),
                               suggestion(found, legal)));
}

}  // namespace gaugeblock
