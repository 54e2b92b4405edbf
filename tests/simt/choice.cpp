// Which kernel `auto` takes: by sizes alone, so that no GPU is needed to ask.
#include "gaugeblock/gpu/choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sizes.h"

namespace gaugeblock::gpu {
namespace {

/// The choice takes the problem and gives a reason; a larger problem never goes back to an earlier rule.
template <class Arguments>
void expect_monotone(const std::vector<Arguments>& growing, const std::string& architecture) {
  std::size_t rule = 0;
  for (const Arguments& arguments : growing) {
    const auto choice = choose_kernel(arguments, architecture);
    ASSERT_NE(choice.kernel, nullptr) << choice.reason;
    EXPECT_FALSE(choice.kernel->declines(arguments).has_value()) << choice.kernel->name;
    EXPECT_FALSE(declines_architecture(choice.kernel->architecture, architecture).has_value())
        << choice.kernel->name;
    EXPECT_FALSE(choice.reason.empty());
    EXPECT_GE(choice.rule, rule) << choice.kernel->name << ": " << choice.reason;
    rule = choice.rule;
  }
}

const std::vector<Index> extents{1,  2,  7,  8,  16,  24,  31,  32,  33,  48,
                                 63, 64, 65, 96, 100, 127, 128, 129, 200, 256};
const std::vector<std::string> architectures{"sm_90", "sm_80", ""};
const std::vector<Index> lengths{0,   1,   2,   17,  63,  64,   65,   127,  128,  129,
                                 255, 256, 257, 512, 513, 1024, 1025, 4096, 65536};

TEST(Choice, EveryRuleNamesAKernel) {
  const auto names = [](const auto& kernels, const std::string& name) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const auto& kernel) { return kernel.name == name; });
  };
  for (const RecurrenceRule& rule : recurrence_rules())
    EXPECT_TRUE(names(cuda_backend::recurrence_kernels(), rule.kernel)) << rule.kernel;
  for (const AxialRule& rule : axial_rules())
    EXPECT_TRUE(names(cuda_backend::axial_kernels(), rule.kernel)) << rule.kernel;
}

TEST(Choice, IsMonotoneInTheSteps) {
  for (const Index K : extents)
    for (const Index V : {Index{1}, Index{24}, Index{128}, Index{200}}) {
      std::vector<RecurrenceArguments> growing;
      for (const Index T : lengths) growing.push_back(recurrence_of_sizes(2, T, 4, K, V));
      for (const std::string& architecture : architectures) expect_monotone(growing, architecture);
    }
}

TEST(Choice, IsMonotoneInTheHeads) {
  for (const Index T : lengths)
    for (const Index K : extents) {
      std::vector<RecurrenceArguments> growing;
      for (const Index heads : {1, 2, 4, 8, 15, 16, 64, 100, 512, 4096, 65536})
        growing.push_back(recurrence_of_sizes(2, T, heads, K, K));
      for (const std::string& architecture : architectures) expect_monotone(growing, architecture);
    }
}

TEST(Choice, IsMonotoneInTheChannels) {
  for (const Index T : lengths)
    for (const Index heads : {Index{1}, Index{4}, Index{64}, Index{512}}) {
      std::vector<RecurrenceArguments> growing;
      for (const Index K : extents) growing.push_back(recurrence_of_sizes(2, T, heads, K, K));
      for (const std::string& architecture : architectures) expect_monotone(growing, architecture);
    }
}

// What a sweep on an H200 found to be the fastest.
TEST(Choice, IsTheFastestOfTheSweep) {
  const auto chosen = [](Index B, Index T, Index H, Index K) {
    return choose_kernel(recurrence_of_sizes(B, T, H, K, K), "sm_90").kernel->name;
  };
  EXPECT_EQ(chosen(2, 128, 4, 24), "register_masked_attention");
  EXPECT_EQ(chosen(2, 256, 4, 24), "tile_masked_attention");
  EXPECT_EQ(chosen(4, 16, 16, 24), "tile_masked_attention");
  EXPECT_EQ(chosen(8, 4, 64, 24), "thread_per_column");
  EXPECT_EQ(chosen(2, 128, 4, 64), "tile_masked_attention");
  EXPECT_EQ(chosen(2, 1, 4, 128), "warps_per_column");
  EXPECT_EQ(chosen(2, 64, 4, 128), "chunked_split_half");
  EXPECT_EQ(chosen(8, 16, 64, 24), "tile_masked_attention");
  EXPECT_EQ(chosen(8, 1, 64, 64), "thread_per_column");
  EXPECT_EQ(chosen(4, 1, 16, 128), "chunked_split_half");
  EXPECT_EQ(chosen(8, 1, 64, 128), "thread_per_column");
  EXPECT_EQ(chosen(4, 16, 16, 128), "chunked_split_half");
  EXPECT_EQ(chosen(8, 64, 64, 24), "chunked_split_half");
  EXPECT_EQ(chosen(4, 256, 16, 128), "chunked_split_half");
}

TEST(Choice, IsMonotoneInTheTokens) {
  for (const Index D : {Index{8}, Index{24}, Index{32}, Index{64}, Index{96}, Index{128}, Index{256}})
    for (const Index heads : {Index{1}, Index{2}, Index{4}, Index{8}})
      for (const AxialPasses passes : {AxialPasses::both, AxialPasses::row, AxialPasses::col}) {
        if (D % heads != 0) continue;
        std::vector<AxialArguments> growing;
        for (const Index L : extents) growing.push_back(axial_of_sizes(1, L, L, D, heads, passes));
        for (const std::string& architecture : architectures) expect_monotone(growing, architecture);
      }
}

// More columns than any kernel's grid or memory holds: no kernel, and every reason.
TEST(Choice, SaysWhyNoKernelTakesAProblem) {
  const auto choice = choose_kernel(recurrence_of_sizes(Index{1} << 40, 1, 1, 1, 1), "sm_90");
  EXPECT_EQ(choice.kernel, nullptr);
  for (const RecurrenceRule& rule : recurrence_rules())
    EXPECT_NE(choice.reason.find("not " + rule.kernel), std::string::npos) << choice.reason;
}

TEST(Choice, SaysThatAnotherGpuLacksTheInstructions) {
  const RecurrenceArguments arguments = recurrence_of_sizes(1, 4096, 1, 64, 64);
  EXPECT_EQ(choose_kernel(arguments, "sm_90").kernel->name, "chunked_split_half");
  const auto choice = choose_kernel(arguments, "sm_80");
  EXPECT_EQ(choice.kernel->name, "chunked");
  EXPECT_NE(
      choice.reason.find("not chunked_split_half (it is made of instructions of sm_90 alone, the GPU is "
                         "sm_80)"),
      std::string::npos)
      << choice.reason;
}

}  // namespace
}  // namespace gaugeblock::gpu
