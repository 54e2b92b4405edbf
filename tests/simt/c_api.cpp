// The C interface, as far as it answers without a GPU: refusals with a reason, and the choice of a variant.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gaugeblock/gpu/c_api/gaugeblock_kernels.h"

namespace {

/// Addresses that are looked at and never followed.
float* somewhere() {
  return reinterpret_cast<float*>(4096);
}

gaugeblock_recurrence recurrence(std::int64_t T, std::int64_t K) {
  gaugeblock_recurrence p{};
  p.batches = 2;
  p.steps = T;
  p.heads = 4;
  p.key_size = p.value_size = K;
  p.q = p.k = p.v = p.gate = p.beta = somewhere();
  p.y = p.final_state = somewhere();
  for (auto* stride : {p.q_stride, p.k_stride, p.v_stride, p.y_stride}) {
    const std::int64_t dense[] = {T * 4 * K, 4 * K, K, 1};
    std::copy(dense, dense + 4, stride);
  }
  return p;
}

gaugeblock_axial axial(std::int64_t L, std::int64_t D, std::int64_t heads) {
  gaugeblock_axial p{};
  p.batches = 1;
  p.height = p.width = L;
  p.channels = D;
  p.heads = heads;
  p.eps = 1e-5F;
  p.x = somewhere();
  p.y = somewhere();
  const std::int64_t dense[] = {L * L * D, L * D, D, 1};
  std::copy(dense, dense + 4, p.x_stride);
  std::copy(dense, dense + 4, p.y_stride);
  p.row = p.col = {somewhere(), somewhere(), somewhere(), somewhere(), somewhere()};
  return p;
}

std::string message() {
  return gaugeblock_message();
}

TEST(CApi, ChoosesAVariantAndSaysWhy) {
  const gaugeblock_recurrence problem = recurrence(4096, 64);
  const char* variant = nullptr;
  ASSERT_EQ(gaugeblock_recurrence_variant(&problem, &variant), GAUGEBLOCK_OK) << message();
  EXPECT_NE(std::string(variant), "");
  EXPECT_NE(message(), "");
  const gaugeblock_axial block = axial(32, 64, 4);
  ASSERT_EQ(gaugeblock_axial_variant(&block, &variant), GAUGEBLOCK_OK) << message();
  EXPECT_NE(std::string(variant), "");
}

TEST(CApi, RefusesBadInputInOneLine) {
  const auto refused = [](gaugeblock_status status, const std::string& word) {
    EXPECT_EQ(status, GAUGEBLOCK_BAD_INPUT);
    EXPECT_NE(message().find(word), std::string::npos) << message();
    EXPECT_EQ(message().find('\n'), std::string::npos);
  };
  const char* variant = nullptr;
  std::size_t bytes = 0;
  gaugeblock_recurrence problem = recurrence(8, 4);
  refused(gaugeblock_recurrence_variant(nullptr, &variant), "problem");
  refused(gaugeblock_recurrence_variant(&problem, nullptr), "NULL");
  refused(gaugeblock_recurrence_workspace(&problem, "no_such_variant", &bytes), "no_such_variant");
  problem.gate = nullptr;
  refused(gaugeblock_recurrence_variant(&problem, &variant), "gate");
  problem = recurrence(-1, 4);
  refused(gaugeblock_recurrence_variant(&problem, &variant), "steps");
  problem = recurrence(8, 0);
  refused(gaugeblock_recurrence_launch(&problem, nullptr, nullptr, 0, nullptr), "key_size");
  gaugeblock_axial block = axial(8, 10, 4);
  refused(gaugeblock_axial_variant(&block, &variant), "heads");
  block = axial(8, 8, 4);
  block.passes = static_cast<gaugeblock_passes>(7);
  refused(gaugeblock_axial_variant(&block, &variant), "passes");
  block = axial(8, 8, 4);
  block.col.out_bias = nullptr;
  refused(gaugeblock_axial_prepare(&block, nullptr, nullptr, 0, nullptr), "out_bias");
  block.passes = GAUGEBLOCK_ROW;  // the column pass's parameters are not looked at
  EXPECT_EQ(gaugeblock_axial_variant(&block, &variant), GAUGEBLOCK_OK) << message();
}

TEST(CApi, AVariantThatDeclinesSaysWhy) {
  const gaugeblock_recurrence problem = recurrence(8, 5000);
  std::size_t bytes = 0;
  EXPECT_EQ(gaugeblock_recurrence_workspace(&problem, "warp_per_column", &bytes), GAUGEBLOCK_UNSUPPORTED);
  EXPECT_NE(message(), "");
}

}  // namespace
