// The device that the kernel tests run on: the interpreter, or with GAUGEBLOCK_TEST_CUDA the first GPU.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "gaugeblock/gpu/runtime/device.h"
#include "gaugeblock/gpu/runtime/errors.h"

#if defined(GAUGEBLOCK_TEST_CUDA)
#define GAUGEBLOCK_TESTED_BACKEND cuda_backend
#else
#define GAUGEBLOCK_TESTED_BACKEND simt_backend
#endif

namespace {

/// The device, or null and the reason in `why`.
gaugeblock::gpu::Device* open_device(std::string& why) {
#if defined(GAUGEBLOCK_TEST_CUDA)
  static std::string reason;
  static const std::unique_ptr<gaugeblock::gpu::Device> gpu =
      []() -> std::unique_ptr<gaugeblock::gpu::Device> {
    try {
      return gaugeblock::gpu::open_cuda_device();
    } catch (const gaugeblock::gpu::NoDevice& error) {
      reason = error.what();
      return nullptr;
    }
  }();
  why = reason;
  return gpu.get();
#else
  why.clear();
  return &gaugeblock::gpu::simt_device();
#endif
}

gaugeblock::gpu::Device& device() {
  std::string why;
  return *open_device(why);
}

/// A test that is not run, and says so, where there is no device.
class TestedDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (open_device(why) == nullptr) GTEST_SKIP() << "not run: " << why;
  }
};

}  // namespace
