// Running one small kernel and looking at its reports.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/device_buffer.h"
#include "gaugeblock/gpu/runtime/launch.h"

namespace gaugeblock::test {

constexpr std::uint32_t full = 0xffffffffU;

inline std::vector<simt::Options> all_schedules() {
  return {{simt::Schedule::in_order, 0, true},
          {simt::Schedule::reversed, 0, true},
          {simt::Schedule::random, 1, true},
          {simt::Schedule::random, 2, true}};
}

/// A buffer of `count` floats 0, 1, 2, …
inline gpu::DeviceBuffer counting(std::int64_t count, const std::string& name = "x",
                                  std::int64_t offset = 0) {
  gpu::DeviceBuffer buffer(gpu::simt_device(), count, name, offset);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  buffer.upload(values);
  return buffer;
}

inline gpu::DeviceBuffer unwritten(std::int64_t count, const std::string& name = "y") {
  return gpu::DeviceBuffer(gpu::simt_device(), count, name);
}

/// The record of one launch, faults and all; nothing is thrown.
template <class Body>
simt::LaunchRecord interpret(const simt::LaunchShape& shape, const simt::Options& options, const Body& body) {
  return simt::interpret("kernel", shape, options, body);
}

inline simt::LaunchShape threads(std::uint32_t count, std::uint32_t blocks = 1,
                                 std::uint64_t dynamic_bytes = 0) {
  simt::LaunchShape shape;
  shape.grid = {blocks, 1, 1};
  shape.block = {count, 1, 1};
  shape.dynamic_shared_bytes = dynamic_bytes;
  return shape;
}

inline std::string texts(const simt::LaunchRecord& record) {
  std::string all;
  for (const simt::Report& report : record.reports) all += report.text() + "\n";
  return all;
}

/// Exactly one kind of fault, at exactly one place, under every schedule; named as it should be.
template <class Body>
simt::Report expect_fault(simt::ReportKind kind, const simt::LaunchShape& shape, const Body& body) {
  simt::Report first;
  for (const simt::Options& options : all_schedules()) {
    const simt::LaunchRecord record = interpret(shape, options, body);
    EXPECT_EQ(record.reports.size(), 1U) << texts(record);
    if (record.reports.empty()) continue;
    const simt::Report& report = record.reports.front();
    EXPECT_EQ(report.kind, kind) << report.text();
    EXPECT_EQ(report.kernel, "kernel");
    EXPECT_EQ(record.completed, !simt::is_fatal(kind)) << report.text();
    EXPECT_EQ(report.at.file.rfind("tests/simt/", 0), 0U) << report.text();
    EXPECT_GT(report.at.line, 0);
    if (first.message.empty()) first = report;
  }
  return first;
}

template <class Body>
void expect_clean(const simt::LaunchShape& shape, const Body& body) {
  for (const simt::Options& options : all_schedules()) {
    const simt::LaunchRecord record = interpret(shape, options, body);
    EXPECT_TRUE(record.reports.empty()) << texts(record);
    EXPECT_TRUE(record.completed);
  }
}

}  // namespace gaugeblock::test
