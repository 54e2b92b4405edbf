// Safetensors files made byte by byte, so that a test can break each rule of the format by itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/files/safetensors.h"

namespace gaugeblock::test {

/// A file: the length of the header (or the claimed one), the header, `data_bytes` zeros.
inline std::string file_bytes(const std::string& header, std::size_t data_bytes,
                              std::int64_t claimed_length = -1) {
  const auto length = static_cast<std::uint64_t>(claimed_length < 0 ? header.size() : claimed_length);
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

inline SafetensorsFile parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "file");
}

/// The message with which `action` refuses its input; "" when it takes it. A message is one line.
template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 600U) << message;
    return message;
  }
  return "";
}

inline std::string refusal_of(const std::string& bytes) {
  return refusal([&] { parse(bytes); });
}

}  // namespace gaugeblock::test
