// Both backends in one program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gaugeblock/gpu/recurrence/kernels.h"

namespace {

namespace gpu = gaugeblock::gpu;

TEST(Backends, ADeviceOrOneLineThatSaysWhyNot) {
  try {
    const auto device = gpu::open_cuda_device();
    EXPECT_FALSE(device->facts().name.empty());
    EXPECT_STREQ(device->backend(), "cuda");
  } catch (const gpu::NoDevice& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("no CUDA device", 0), 0U) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_STREQ(gpu::simt_device().backend(), "simt");
  EXPECT_EQ(gpu::simt_device().facts().name, "interpreter");
}

#if defined(GAUGEBLOCK_HAS_CUDA)
TEST(Backends, HaveTheSameKernels) {
  const auto names = [](const std::vector<gpu::RecurrenceKernel>& kernels) {
    std::vector<std::string> all;
    for (const gpu::RecurrenceKernel& kernel : kernels) all.push_back(kernel.name + ": " + kernel.summary);
    return all;
  };
  // Kernels for tensor cores come last, and on CUDA only.
  std::vector<gpu::RecurrenceKernel> portable = gpu::cuda_backend::recurrence_kernels();
  while (portable.back().split_half) portable.pop_back();
  EXPECT_EQ(names(gpu::simt_backend::recurrence_kernels()), names(portable));
  for (const gpu::RecurrenceKernel& kernel : gpu::cuda_backend::recurrence_kernels()) {
    EXPECT_NE(kernel.run, nullptr);
    EXPECT_NE(kernel.declines, nullptr);
  }
}
#endif

}  // namespace
