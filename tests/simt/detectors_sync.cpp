// Faults at meeting points: for each a kernel that has it, and a twin that differs in that point only.
#include "fixture.h"

namespace gaugeblock::test {
namespace {

using simt::ReportKind;

std::vector<int> range(int first, int last) {
  std::vector<int> lanes;
  for (int i = first; i <= last; ++i) lanes.push_back(i);
  return lanes;
}

TEST(BarrierDivergence, TwoBarriersForOneBlock) {
  const auto report = expect_fault(ReportKind::barrier_divergence, threads(64), [] {
    if (threadIdx.x < 16) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  });
  EXPECT_EQ(report.lanes, range(0, 15));
  EXPECT_EQ(report.at.line + 2, report.other.line);
  expect_clean(threads(64), [] {
    float x = 0;
    if (threadIdx.x < 16) x = 1;
    __syncthreads();
    (void)x;
  });
}

// Threads that have exited are not waited for.
TEST(BarrierDivergence, ABarrierAfterOthersExitedIsLegal) {
  expect_clean(threads(96), [] {
    if (threadIdx.x >= 5) return;
    __syncthreads();
  });
}

TEST(BarrierDivergence, BarriersThatVoteCountTheThreadsThatAreLeft) {
  gpu::DeviceBuffer y = unwritten(3);
  const auto kernel = [&] {
    const simt::Global<float> out(y.data());
    if (threadIdx.x >= 40) return;
    const int count = __syncthreads_count(threadIdx.x % 2 == 0);
    const int any = __syncthreads_or(threadIdx.x == 39);
    const int all = __syncthreads_and(threadIdx.x < 39);
    if (threadIdx.x != 7) return;
    out[0] = static_cast<float>(count);
    out[1] = static_cast<float>(any);
    out[2] = static_cast<float>(all);
  };
  expect_clean(threads(64), kernel);
  EXPECT_EQ(y.download(), (std::vector<float>{20, 1, 0}));
}

TEST(MissingLane, AShuffleThatSomeLanesSkip) {
  const auto report = expect_fault(ReportKind::missing_lane, threads(32), [] {
    float x = 1;
    if (threadIdx.x < 24) x = __shfl_down_sync(full, x, 1);
    (void)x;
  });
  EXPECT_FALSE(report.lanes.empty());
  for (const int lane : report.lanes) EXPECT_GE(lane, 24);
  expect_clean(threads(32), [] {
    float x = threadIdx.x < 24 ? 1 : 0;
    x = __shfl_down_sync(full, x, 1);
    (void)x;
  });
}

// Short warps: the mask names lanes that the block does not have.
TEST(MissingLane, AMaskWiderThanTheBlock) {
  const auto report = expect_fault(ReportKind::missing_lane, threads(24), [] {
    const float x = __shfl_xor_sync(full, 1.0F, 1);
    (void)x;
  });
  EXPECT_EQ(report.lanes, range(24, 31));
  expect_clean(threads(24), [] {
    const float x = __shfl_xor_sync(0x00ffffffU, 1.0F, 1);
    (void)x;
  });
}

TEST(MissingLane, ASyncwarpThatALaneNeverReaches) {
  const auto report = expect_fault(ReportKind::missing_lane, threads(64), [] {
    if (threadIdx.x != 40) __syncwarp();
  });
  EXPECT_EQ(report.lanes, std::vector<int>{40});
  expect_clean(threads(64), [] {
    if (threadIdx.x != 40) __syncwarp(threadIdx.x < 32 ? full : full & ~(1U << 8));
  });
}

TEST(MissingLane, AVoteWhileOthersWaitAtABarrier) {
  const auto report = expect_fault(ReportKind::missing_lane, threads(32), [] {
    if (threadIdx.x < 4) __syncthreads();
    const unsigned votes = __ballot_sync(full, 1);
    if (threadIdx.x >= 4) __syncthreads();
    (void)votes;
  });
  EXPECT_EQ(report.lanes, range(0, 3));
  EXPECT_NE(report.message.find("__syncthreads"), std::string::npos) << report.message;
  expect_clean(threads(32), [] {
    const unsigned votes = __ballot_sync(full, 1);
    __syncthreads();
    (void)votes;
  });
}

TEST(DivergentExchange, TwoShufflesForOneMask) {
  expect_fault(ReportKind::divergent_exchange, threads(32), [] {
    float x = 1;
    if (threadIdx.x % 2 == 0) {
      x = __shfl_sync(full, x, 0);
    } else {
      x = __shfl_sync(full, x, 0);
    }
    (void)x;
  });
  expect_clean(threads(32), [] {
    const float x = __shfl_sync(full, threadIdx.x % 2 == 0 ? 1.0F : 2.0F, 0);
    (void)x;
  });
}

TEST(DivergentExchange, AVoteAgainstAShuffle) {
  expect_fault(ReportKind::divergent_exchange, threads(32), [] {
    if (threadIdx.x < 8) {
      const int any = __any_sync(full, 1);
      (void)any;
    } else {
      const float x = __shfl_sync(full, 1.0F, 0);
      (void)x;
    }
  });
  expect_clean(threads(32), [] {
    const int any = __any_sync(full, threadIdx.x < 8);
    const float x = __shfl_sync(full, 1.0F, 0);
    (void)any, (void)x;
  });
}

// Each half on its own is a warp operation of its own; so are halves that come in another order than they
// left.
TEST(DivergentExchange, DisjointMasksDoNotMeet) {
  expect_clean(threads(32), [] {
    if (threadIdx.x < 16) {
      const float x = __shfl_xor_sync(0x0000ffffU, 1.0F, 1);
      (void)x;
    } else {
      const float x = __shfl_xor_sync(0xffff0000U, 2.0F, 1);
      (void)x;
    }
    if (threadIdx.x < 8) __syncwarp(0xff);
    __syncwarp();
  });
}

TEST(LaneOutsideOwnMask, Shuffle) {
  const auto report = expect_fault(ReportKind::lane_outside_own_mask, threads(1), [] {
    const float x = __shfl_sync(2U, 1.0F, 1);
    (void)x;
  });
  EXPECT_EQ(report.lanes, std::vector<int>{0});
  expect_clean(threads(1), [] {
    const float x = __shfl_sync(1U, 1.0F, 0);
    (void)x;
  });
}

TEST(ShuffleSourceOutsideMask, Down) {
  const auto report = expect_fault(ReportKind::shuffle_source_outside_mask, threads(24), [] {
    const float x = __shfl_down_sync(0x00ffffffU, 1.0F, 16);
    (void)x;
  });
  EXPECT_EQ(report.lanes, range(8, 15));  // 16 to 23 would read past the warp: they keep their own value
  expect_clean(threads(24), [] {
    const float x = __shfl_down_sync(0x00ffffffU, 1.0F, 16, 8);
    (void)x;
  });
}

TEST(Reports, NameTheBlock) {
  simt::LaunchShape shape = threads(32);
  shape.grid = {2, 3, 4};
  const auto record = interpret(shape, {}, [] {
    if (blockIdx.x == 1 && blockIdx.y == 2 && blockIdx.z == 3 && threadIdx.x == 5) return;
    __syncwarp();
  });
  ASSERT_EQ(record.reports.size(), 1U);
  EXPECT_EQ(record.reports[0].block, (std::array<std::uint32_t, 3>{1, 2, 3}));
  EXPECT_EQ(record.reports[0].lanes, std::vector<int>{5});
  EXPECT_NE(record.reports[0].text().find("kernel at tests/simt/detectors_sync.cpp:"), std::string::npos)
      << record.reports[0].text();
}

// --- results of the operations, against their definitions in the CUDA programming guide ---

TEST(WarpOperations, ShufflesOfEveryKindAndWidth) {
  gpu::DeviceBuffer y = unwritten(32 * 4 * 5);
  const auto kernel = [&] {
    const simt::Global<float> out(y.data());
    const int lane = static_cast<int>(threadIdx.x);
    const auto value = static_cast<float>(lane);
    int row = 0;
    for (int width = 32; width >= 2; width /= 2) {
      out[(row * 4 + 0) * 32 + lane] = __shfl_sync(full, value, 3, width);
      out[(row * 4 + 1) * 32 + lane] = __shfl_up_sync(full, value, 3, width);
      out[(row * 4 + 2) * 32 + lane] = __shfl_down_sync(full, value, 3, width);
      out[(row * 4 + 3) * 32 + lane] = __shfl_xor_sync(full, value, 3, width);
      ++row;
    }
  };
  expect_clean(threads(32), kernel);
  const std::vector<float> actual = y.download();
  int row = 0;
  for (int width = 32; width >= 2; width /= 2, ++row)
    for (int lane = 0; lane < 32; ++lane) {
      const int first = lane / width * width;
      EXPECT_EQ(actual[(row * 4 + 0) * 32 + lane], first + 3 % width);
      EXPECT_EQ(actual[(row * 4 + 1) * 32 + lane], lane - 3 >= first ? lane - 3 : lane);
      EXPECT_EQ(actual[(row * 4 + 2) * 32 + lane], lane + 3 < first + width ? lane + 3 : lane);
      EXPECT_EQ(actual[(row * 4 + 3) * 32 + lane], (lane ^ 3) < first + width ? lane ^ 3 : lane);
    }
}

TEST(WarpOperations, ShuffleEightBytes) {
  gpu::DeviceBuffer y = unwritten(32);
  expect_clean(threads(32), [&] {
    const simt::Global<float> out(y.data());
    const double value = __shfl_sync(full, 1.0 + 0x1p-40 * threadIdx.x, 9);
    const long long whole = __shfl_sync(full, (1LL << 40) + static_cast<long long>(threadIdx.x), 9);
    out[threadIdx.x] = value == 1.0 + 9 * 0x1p-40 && whole == (1LL << 40) + 9 ? 1.0F : 0.0F;
  });
  EXPECT_EQ(y.download(), std::vector<float>(32, 1.0F));
}

TEST(WarpOperations, Votes) {
  gpu::DeviceBuffer y = unwritten(3);
  expect_clean(threads(32), [&] {
    const simt::Global<float> out(y.data());
    const unsigned odd = __ballot_sync(full, threadIdx.x % 2);
    const int any = __any_sync(full, threadIdx.x == 31);
    const int all = __all_sync(full, threadIdx.x < 31);
    if (threadIdx.x == 0) {
      out[0] = odd == 0xaaaaaaaaU ? 1.0F : 0.0F;
      out[1] = static_cast<float>(any);
      out[2] = static_cast<float>(all);
    }
  });
  EXPECT_EQ(y.download(), (std::vector<float>{1, 1, 0}));
}

// The order in which threads get their turn: what a schedule is.
TEST(Schedules, AreInOrderReversedOrSeeded) {
  const auto order = [](const simt::Options& options) {
    gpu::DeviceBuffer y = unwritten(8), next = counting(1, "next");
    const auto record = interpret(threads(4, 2), options, [&] {
      const simt::Global<float> out(y.data());
      const simt::Global<int> turn(reinterpret_cast<int*>(next.data()));
      const int mine = atomicAdd(&turn[0], 1);
      out[mine] = static_cast<float>(4 * blockIdx.x + threadIdx.x);
    });
    EXPECT_TRUE(record.reports.empty()) << texts(record);
    return y.download();
  };
  EXPECT_EQ(order({simt::Schedule::in_order, 0, true}), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(order({simt::Schedule::reversed, 0, true}), (std::vector<float>{7, 6, 5, 4, 3, 2, 1, 0}));
  const auto seeded = [&](std::uint64_t seed) { return order({simt::Schedule::random, seed, true}); };
  EXPECT_EQ(seeded(1), seeded(1));
  EXPECT_TRUE(seeded(1) != seeded(2) || seeded(2) != seeded(3));
}

TEST(Grids, HaveThreeDimensions) {
  simt::LaunchShape shape;
  shape.grid = {3, 2, 2};
  shape.block = {4, 3, 2};
  gpu::DeviceBuffer y = unwritten(3 * 2 * 2 * 4 * 3 * 2);
  expect_clean(shape, [&] {
    const simt::Global<float> out(y.data());
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned at = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[at] = static_cast<float>(at);
  });
  const std::vector<float> actual = y.download();
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(actual[i], static_cast<float>(i));
}

}  // namespace
}  // namespace gaugeblock::test
