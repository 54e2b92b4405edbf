// Faults of memory accesses: for each a kernel that has it, and a twin that differs in that point only.
#include <thread>

#include "fixture.h"

namespace gaugeblock::test {
namespace {

using simt::ReportKind;

TEST(SharedRace, AMissingBarrier) {
  gpu::DeviceBuffer y = unwritten(64);
  const auto with_barrier = [&](bool barrier) {
    return [&, barrier] {
      const simt::Global<float> out(y.data());
      GAUGEBLOCK_STATIC_SHARED(float, tile, 64);
      tile[threadIdx.x] = static_cast<float>(threadIdx.x);
      if (threadIdx.x == 0) tile[63] = 1;  // so that thread 0 meets a word of the other warp in any order
      if (barrier) __syncthreads();
      if (threadIdx.x == 0) out[0] = tile[62];
    };
  };
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(64), options, with_barrier(false));
    ASSERT_FALSE(record.reports.empty());
    bool race = false;
    for (const auto& report : record.reports) race = race || report.kind == ReportKind::shared_race;
    EXPECT_TRUE(race) << texts(record);
    EXPECT_TRUE(record.completed);
  }
}

TEST(SharedRace, NeighboursWithinAWarp) {
  gpu::DeviceBuffer y = unwritten(32);
  const auto kernel = [&](bool ordered) {
    return [&, ordered] {
      const simt::Global<float> out(y.data());
      GAUGEBLOCK_STATIC_SHARED(float, tile, 32);
      const unsigned i = threadIdx.x;
      tile[i] = static_cast<float>(i);
      // A shuffle makes the lanes meet but orders no memory.
      const float met = __shfl_sync(full, 1.0F, 0);
      if (ordered) __syncwarp();
      const float left = tile[(i + 31) % 32];
      out[i] = left + met;
    };
  };
  const auto report = expect_fault(ReportKind::shared_race, threads(32), kernel(false));
  EXPECT_EQ(report.at.line, report.other.line + 4);
  EXPECT_EQ(report.lanes.size(), 32U);
  EXPECT_EQ(report.count, 32U);
  expect_clean(threads(32), kernel(true));
}

// Reading before another lane overwrites: the order matters as much.
TEST(SharedRace, AWriteAfterARead) {
  gpu::DeviceBuffer y = unwritten(32);
  const auto kernel = [&](bool ordered) {
    return [&, ordered] {
      const simt::Global<float> out(y.data());
      GAUGEBLOCK_STATIC_SHARED(float, cell, 1);
      if (threadIdx.x == 0) cell[0] = 1;
      __syncwarp();
      const float read = cell[0];  // by all lanes
      if (ordered) __syncwarp();
      if (threadIdx.x == 31) cell[0] = 2;
      out[threadIdx.x] = read;
    };
  };
  // In every schedule lane 31 conflicts with lanes that read before it or read after it.
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(32), options, kernel(false));
    ASSERT_FALSE(record.reports.empty());
    for (const auto& report : record.reports)
      EXPECT_EQ(report.kind, ReportKind::shared_race) << report.text();
  }
  expect_clean(threads(32), kernel(true));
}

// A __syncwarp of half the warp orders that half only.
TEST(SharedRace, AnOrderOfTheWrongLanes) {
  const auto kernel = [](unsigned half) {
    return [half] {
      GAUGEBLOCK_STATIC_SHARED(float, tile, 32);
      const unsigned i = threadIdx.x;
      tile[i] = 1;
      __syncwarp(i < 16 ? 0x0000ffffU : 0xffff0000U);
      const float other = tile[i ^ half];
      (void)other;
    };
  };
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(32), options, kernel(16));
    bool race = false;
    for (const auto& report : record.reports) race = race || report.kind == ReportKind::shared_race;
    EXPECT_TRUE(race);
  }
  expect_clean(threads(32), kernel(8));
}

TEST(SharedRace, AtomicsDoNotRaceWithEachOther) {
  gpu::DeviceBuffer y = unwritten(1);
  const auto kernel = [&](bool atomic) {
    return [&, atomic] {
      const simt::Global<float> out(y.data());
      GAUGEBLOCK_STATIC_SHARED(float, sum, 1);
      if (threadIdx.x == 0) sum[0] = 0;
      __syncthreads();
      if (atomic)
        atomicAdd(&sum[0], 1.0F);
      else
        sum[0] += 1.0F;
      __syncthreads();
      if (threadIdx.x == 0) out[0] = sum[0];
    };
  };
  expect_clean(threads(64), kernel(true));
  EXPECT_EQ(y.download()[0], 64.0F);
  const auto record = interpret(threads(64), {}, kernel(false));
  ASSERT_FALSE(record.reports.empty());
  for (const auto& report : record.reports) EXPECT_EQ(report.kind, ReportKind::shared_race);
}

TEST(GlobalRace, WithinABlock) {
  gpu::DeviceBuffer y = unwritten(64);
  const auto kernel = [&](bool barrier) {
    return [&, barrier] {
      const simt::Global<float> out(y.data());
      out[threadIdx.x] = 1;
      if (barrier) __syncthreads();
      if (threadIdx.x == 40) out[3] = 2;
    };
  };
  const auto report = expect_fault(ReportKind::global_race, threads(64), kernel(false));
  EXPECT_TRUE(report.lanes == std::vector<int>{40} || report.lanes == std::vector<int>{3});
  expect_clean(threads(64), kernel(true));
}

TEST(GlobalRace, BetweenBlocks) {
  gpu::DeviceBuffer x = counting(8), y = unwritten(8);
  // Every block writes the same value to the same word: still a race.
  expect_fault(ReportKind::global_race_between_blocks, threads(1, 4), [&] {
    const simt::Global<float> out(y.data());
    out[0] = 1;
  });
  expect_clean(threads(1, 4), [&] {
    const simt::Global<float> out(y.data());
    out[blockIdx.x] = 1;
  });
  // Block b updates word b in place and reads its neighbour.
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(1, 4), options, [&] {
      const simt::Global<float> io(x.data());
      const float next = io[blockIdx.x + 1];
      io[blockIdx.x] = next;
    });
    // Found at the read or at the write, whichever block comes later.
    ASSERT_FALSE(record.reports.empty());
    for (const auto& report : record.reports)
      EXPECT_EQ(report.kind, ReportKind::global_race_between_blocks) << report.text();
  }
}

// The last block to arrive adds what the others left: legal with a fence before the counter, a race without.
TEST(GlobalRace, AFenceAndACounterOrderBlocks) {
  gpu::DeviceBuffer y = unwritten(9);
  gpu::DeviceBuffer counter = counting(1, "counter");
  const auto kernel = [&](bool fence) {
    return [&, fence] {
      const simt::Global<float> partial(y.data());
      const simt::Global<unsigned> arrived(reinterpret_cast<unsigned*>(counter.data()));
      GAUGEBLOCK_STATIC_SHARED(unsigned, last, 1);
      partial[blockIdx.x * 2 + threadIdx.x] = 1;
      __syncthreads();
      if (threadIdx.x == 0) {
        if (fence) __threadfence();
        last[0] = atomicAdd(&arrived[0], 1U);
      }
      __syncthreads();
      const unsigned before = last[0];
      if (before == gridDim.x - 1 && threadIdx.x == 1) {
        float sum = 0;
        for (unsigned i = 0; i < 2 * gridDim.x; ++i) sum += partial[i];
        partial[8] = sum;
      }
    };
  };
  for (const simt::Options& options : all_schedules()) {
    counter.upload(std::vector<float>{0.0F});
    const auto record = interpret(threads(2, 4), options, kernel(true));
    EXPECT_TRUE(record.reports.empty()) << texts(record);
    EXPECT_EQ(y.download()[8], 8.0F);
    counter.upload(std::vector<float>{0.0F});
    const auto unfenced = interpret(threads(2, 4), options, kernel(false));
    ASSERT_EQ(unfenced.reports.size(), 1U) << texts(unfenced);
    EXPECT_EQ(unfenced.reports[0].kind, ReportKind::global_race_between_blocks);
  }
}

TEST(Uninitialized, SharedMemoryOfThisBlock) {
  gpu::DeviceBuffer y = unwritten(2);
  const auto kernel = [&](bool first_block_only) {
    return [&, first_block_only] {
      const simt::Global<float> out(y.data());
      GAUGEBLOCK_DYNAMIC_SHARED(float, cell);
      // Block 1 finds what block 0 left on a GPU, sometimes; nothing promises it.
      if (!first_block_only || blockIdx.x == 0) cell[0] = 1;
      out[blockIdx.x] = cell[0];
    };
  };
  const auto report = expect_fault(ReportKind::uninitialized_shared, threads(1, 2, 4), kernel(true));
  EXPECT_EQ(report.block[0], 1U);
  expect_clean(threads(1, 2, 4), kernel(false));
}

TEST(Uninitialized, GlobalMemory) {
  gpu::DeviceBuffer x = unwritten(8, "x"), y = unwritten(8);
  x.upload(std::vector<float>{0, 1, 2, 3, 4, 5, 6}.data(), 7);
  const auto kernel = [&](unsigned count) {
    return [&, count] {
      const simt::Global<const float> in(x.data());
      const simt::Global<float> out(y.data());
      if (threadIdx.x < count) out[threadIdx.x] = in[threadIdx.x];
    };
  };
  const auto report = expect_fault(ReportKind::uninitialized_global, threads(8), kernel(8));
  EXPECT_EQ(report.lanes, std::vector<int>{7});
  EXPECT_NE(report.message.find("'x'"), std::string::npos);
  expect_clean(threads(8), kernel(7));
  // What one launch writes, the next may read.
  expect_clean(threads(7), [&] {
    const simt::Global<float> io(y.data());
    io[threadIdx.x] += 1;
  });
}

TEST(OutOfBounds, Shared) {
  for (const bool dynamic : {false, true}) {
    const auto kernel = [dynamic](unsigned last) {
      return [dynamic, last] {
        GAUGEBLOCK_STATIC_SHARED(float, fixed, 4);
        GAUGEBLOCK_DYNAMIC_SHARED(float, sized);
        if (dynamic)
          sized[last] = 1;
        else
          fixed[last] = 1;
      };
    };
    const auto report = expect_fault(ReportKind::shared_out_of_bounds, threads(1, 1, 16), kernel(4));
    EXPECT_NE(report.message.find("16 bytes"), std::string::npos) << report.message;
    expect_clean(threads(1, 1, 16), kernel(3));
  }
}

// Two arrays in one piece of dynamic shared memory: a slice knows where it ends.
TEST(OutOfBounds, ASliceOfSharedMemory) {
  const auto kernel = [](int i) {
    return [i] {
      GAUGEBLOCK_DYNAMIC_SHARED(float, all);
      const simt::Shared<float> left = all.slice(0, 4), right = all.slice(4, 4);
      right[0] = 0;
      left[i] = 1;
    };
  };
  expect_fault(ReportKind::shared_out_of_bounds, threads(1, 1, 32), kernel(4));
  expect_clean(threads(1, 1, 32), kernel(3));
}

TEST(OutOfBounds, GlobalAndItsGuardBands) {
  gpu::DeviceBuffer x = counting(8), y = unwritten(8);
  const auto kernel = [&](int first) {
    return [&, first] {
      const simt::Global<const float> in(x.data());
      const simt::Global<float> out(y.data());
      out[threadIdx.x] = in[first + static_cast<int>(threadIdx.x)];
    };
  };
  const auto past = expect_fault(ReportKind::global_out_of_bounds, threads(8), kernel(1));
  EXPECT_EQ(past.lanes, std::vector<int>{7});
  EXPECT_NE(past.message.find("guard band"), std::string::npos) << past.message;
  EXPECT_NE(past.message.find("0 bytes past buffer 'x'"), std::string::npos) << past.message;
  const auto before = expect_fault(ReportKind::global_out_of_bounds, threads(8), kernel(-1));
  EXPECT_NE(before.message.find("4 bytes before buffer 'x'"), std::string::npos) << before.message;
  const auto far = expect_fault(ReportKind::global_out_of_bounds, threads(8), kernel(1 << 28));
  EXPECT_EQ(far.message.find("guard band"), std::string::npos) << far.message;
  expect_clean(threads(8), kernel(0));
}

// Without tracking too, so that no fault of a kernel spoils the program that runs it.
TEST(OutOfBounds, AreFoundWithoutTracking) {
  gpu::DeviceBuffer x = counting(8);
  simt::Options options;
  options.tracking = false;
  const auto record = interpret(threads(1), options, [&] {
    const simt::Global<float> io(x.data());
    io[8] = 1;
  });
  ASSERT_EQ(record.reports.size(), 1U);
  EXPECT_EQ(record.reports[0].kind, ReportKind::global_out_of_bounds);
  EXPECT_EQ(x.guard_damage(), std::nullopt);
}

TEST(UnknownMemory, AHostPointer) {
  float host = 0;
  expect_fault(ReportKind::unknown_memory, threads(1), [&] {
    const simt::Global<float> io(&host);
    io[0] = 1;
  });
  gpu::DeviceBuffer y = unwritten(1);
  expect_clean(threads(1), [&] {
    const simt::Global<float> io(y.data());
    const simt::Global<float> never_used(nullptr);
    (void)never_used;
    io[0] = 1;
  });
  expect_fault(ReportKind::global_out_of_bounds, threads(1), [&] {
    const simt::Global<float> null(nullptr);
    null[0] = 1;
  });
}

TEST(Misaligned, VectorLoadsAndStores) {
  gpu::DeviceBuffer aligned = counting(16), shifted = counting(16, "shifted", 1);
  const auto load = [](gpu::DeviceBuffer& x, int first) {
    return [&x, first] {
      const simt::Global<const float> in(x.data());
      const auto four = simt::load_vector<float4>(in, first);
      (void)four;
    };
  };
  const auto store = [](gpu::DeviceBuffer& x, int first) {
    return [&x, first] {
      const simt::Global<float> out(x.data());
      simt::store_vector(out, first, make_float2(1, 2));
    };
  };
  expect_fault(ReportKind::misaligned_access, threads(1), load(aligned, 2));
  expect_fault(ReportKind::misaligned_access, threads(1), load(shifted, 0));
  expect_fault(ReportKind::misaligned_access, threads(1), store(aligned, 1));
  expect_fault(ReportKind::misaligned_access, threads(1), store(shifted, 2));
  expect_clean(threads(1), load(aligned, 4));
  expect_clean(threads(1), load(shifted, 3));
  expect_clean(threads(1), store(aligned, 2));
  expect_clean(threads(1), store(shifted, 1));
  expect_fault(ReportKind::misaligned_access, threads(1, 1, 64), [] {
    GAUGEBLOCK_DYNAMIC_SHARED(float, tile);
    simt::store_vector(tile, 2, make_float4(1, 2, 3, 4));
  });
}

TEST(Atomics, ReturnTheOldValue) {
  gpu::DeviceBuffer x = counting(4), y = unwritten(4);
  expect_clean(threads(1), [&] {
    const simt::Global<float> out(y.data());
    const simt::Global<int> in(reinterpret_cast<int*>(x.data()));
    in[0] = 5;
    const int added = atomicAdd(&in[0], 3);       // 5, then 8
    const int larger = atomicMax(&in[0], 7);      // 8, stays
    const int swapped = atomicCAS(&in[0], 8, 1);  // 8, then 1
    const int kept = atomicCAS(&in[0], 8, 2);     // 1, stays
    out[0] = static_cast<float>(added);
    out[1] = static_cast<float>(larger);
    out[2] = static_cast<float>(swapped);
    out[3] = static_cast<float>(kept);
  });
  EXPECT_EQ(y.download(), (std::vector<float>{5, 8, 8, 1}));
}

// A lane may do far more between two meetings than its log holds.
TEST(Tracking, LongRunsWithoutMeetings) {
  gpu::DeviceBuffer x = counting(64), y = unwritten(64);
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(64), options, [&] {
      const simt::Global<const float> in(x.data());
      const simt::Global<float> out(y.data());
      float sum = 0;
      for (int n = 0; n < 1000; ++n) {
        const float value = in[threadIdx.x];
        sum += value;
      }
      out[threadIdx.x] = sum;
    });
    EXPECT_TRUE(record.reports.empty()) << texts(record);
    EXPECT_EQ(record.cost.global_requests, 2 * 1000U + 2U);
    EXPECT_EQ(record.cost.global_sectors, 4 * (2 * 1000U + 2U));
  }
}

// A thread that waits for a word until another thread writes it: legal when that one comes, reported when
// not.
TEST(NoProgress, ASpinningThread) {
  gpu::DeviceBuffer flag = counting(1, "flag");
  const auto kernel = [&](bool set) {
    return [&, set] {
      const simt::Global<int> word(reinterpret_cast<int*>(flag.data()));
      if (threadIdx.x == 1 && set) atomicExch(&word[0], 1);
      if (threadIdx.x == 0)
        while (atomicAdd(&word[0], 0) == 0) {
        }
    };
  };
  const auto record = interpret(threads(2), {}, kernel(false));
  ASSERT_EQ(record.reports.size(), 1U) << texts(record);
  EXPECT_EQ(record.reports[0].kind, ReportKind::no_progress);
  EXPECT_EQ(record.reports[0].lanes, std::vector<int>{0});
  EXPECT_FALSE(record.completed);
  expect_clean(threads(2), kernel(true));
}

// Campaigns interpret in several host threads at once.
TEST(HostThreads, InterpretIndependently) {
  std::vector<std::thread> workers;
  std::vector<float> sums(4);
  for (std::size_t n = 0; n < sums.size(); ++n)
    workers.emplace_back([n, &sums] {
      gpu::DeviceBuffer x = counting(256), y = unwritten(1);
      for (int repetition = 0; repetition < 20; ++repetition) {
        const auto record = interpret(threads(256), {simt::Schedule::random, n, true}, [&] {
          const simt::Global<const float> in(x.data());
          const simt::Global<float> out(y.data());
          GAUGEBLOCK_STATIC_SHARED(float, tree, 256);
          tree[threadIdx.x] = in[threadIdx.x];
          __syncthreads();
          for (unsigned half = 128; half > 0; half /= 2) {
            if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
            __syncthreads();
          }
          if (threadIdx.x == 0) out[0] = tree[0];
        });
        if (!record.reports.empty() || !record.completed) return;
      }
      sums[n] = y.download()[0];
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(sums, std::vector<float>(4, 255 * 128.0F));
}

}  // namespace
}  // namespace gaugeblock::test
