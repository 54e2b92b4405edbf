// Launches, device buffers and costs.
#include <limits>

#include "fixture.h"

namespace gaugeblock::test {
namespace {

using simt::ReportKind;

__global__ void nothing() {}
__global__ void store_index(float* y_) {
  const simt::Global<float> y(y_);
  y[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(threadIdx.x);
}
__global__ void store_outside(float* y_) {
  const simt::Global<float> y(y_);
  y[-1] = 1;
}
__global__ void two_arrays() {
  GAUGEBLOCK_STATIC_SHARED(float, fixed, 8 * 1024);
  GAUGEBLOCK_DYNAMIC_SHARED(float, sized);
  fixed[0] = 0;
  sized[0] = 0;
}

void expect_refused(dim3 grid, dim3 block, std::size_t bytes, const std::string& part) {
  gpu::LaunchContext context(gpu::simt_device());
  try {
    gpu::launch(GAUGEBLOCK_KERNEL(nothing), grid, block, bytes, context);
    ADD_FAILURE() << "not refused: " << part;
  } catch (const gpu::LaunchRefused& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("nothing"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  ASSERT_EQ(context.launches.size(), 1U);
  EXPECT_FALSE(context.launches[0].completed);
  ASSERT_EQ(context.launches[0].reports.size(), 1U);
  EXPECT_EQ(context.launches[0].reports[0].kind, ReportKind::launch_refused);
}

void expect_accepted(dim3 grid, dim3 block, std::size_t bytes) {
  gpu::LaunchContext context(gpu::simt_device());
  EXPECT_NO_THROW(gpu::launch(GAUGEBLOCK_KERNEL(nothing), grid, block, bytes, context));
}

TEST(Launch, RefusesWhatAGpuRefusesAndTakesTheLargestItTakes) {
  expect_refused(dim3(1), dim3(1025), 0, "block.x is 1025");
  expect_refused(dim3(1), dim3(32, 33), 0, "1056 threads");
  expect_refused(dim3(1), dim3(1, 1, 65), 0, "block.z is 65");
  expect_refused(dim3(1), dim3(0), 0, "block.x is 0");
  expect_refused(dim3(0), dim3(1), 0, "grid.x is 0");
  expect_refused(dim3(1, 65536), dim3(1), 0, "grid.y is 65536");
  expect_refused(dim3(1, 1, 65536), dim3(1), 0, "grid.z is 65536");
  expect_refused(dim3(2147483648U), dim3(1), 0, "grid.x is 2147483648");
  expect_refused(dim3(1), dim3(1), 227 * 1024 + 4, "allowed are 232448");
  expect_accepted(dim3(1), dim3(1024), 0);
  expect_accepted(dim3(1), dim3(1, 16, 64), 0);
  expect_accepted(dim3(1, 65535), dim3(1), 0);
  expect_accepted(dim3(65536), dim3(1), 0);
  expect_accepted(dim3(1), dim3(1), 227 * 1024);
}

// launch() opts in; the interpreter itself refuses as a GPU does when nobody has.
TEST(Launch, MoreThan48KilobytesNeedTheOptIn) {
  simt::LaunchShape shape = threads(1, 1, 48 * 1024);
  EXPECT_TRUE(interpret(shape, {}, [] {}).completed);
  shape.dynamic_shared_bytes += 4;
  const auto record = interpret(shape, {}, [] {});
  ASSERT_EQ(record.reports.size(), 1U);
  EXPECT_EQ(record.reports[0].kind, ReportKind::launch_refused);
  EXPECT_NE(record.reports[0].message.find("without the opt-in"), std::string::npos);
  shape.shared_opt_in = true;
  EXPECT_TRUE(interpret(shape, {}, [] {}).completed);
}

TEST(Launch, CountsStaticSharedMemoryToo) {
  // 32 KB static and 16 KB dynamic are 48 KB; one more float needs the opt-in.
  simt::LaunchShape shape = threads(1, 1, 16 * 1024);
  EXPECT_TRUE(interpret(shape, {}, [] { two_arrays(); }).completed);
  shape.dynamic_shared_bytes += 4;
  const auto record = interpret(shape, {}, [] { two_arrays(); });
  ASSERT_EQ(record.reports.size(), 1U);
  EXPECT_EQ(record.reports[0].kind, ReportKind::launch_refused);
  gpu::LaunchContext context(gpu::simt_device());
  EXPECT_NO_THROW(gpu::launch(GAUGEBLOCK_KERNEL(two_arrays), dim3(1), dim3(1), 195 * 1024, context));
  EXPECT_THROW(gpu::launch(GAUGEBLOCK_KERNEL(two_arrays), dim3(1), dim3(1), 195 * 1024 + 4, context),
               gpu::LaunchRefused);
}

TEST(Launch, PassesArgumentsAndKeepsRecords) {
  gpu::DeviceBuffer y = unwritten(6);
  gpu::LaunchContext context(gpu::simt_device());
  gpu::launch(GAUGEBLOCK_KERNEL(store_index), dim3(2), dim3(3), 0, context, y.data());
  EXPECT_EQ(y.download(), (std::vector<float>{0, 1, 2, 0, 1, 2}));
  ASSERT_EQ(context.launches.size(), 1U);
  EXPECT_EQ(context.launches[0].kernel, "store_index");
  EXPECT_EQ(context.launches[0].grid, (std::array<std::uint32_t, 3>{2, 1, 1}));
  EXPECT_TRUE(context.reports().empty());
}

TEST(Launch, ThrowsWhenTheKernelFails) {
  gpu::DeviceBuffer y = unwritten(6);
  gpu::LaunchContext context(gpu::simt_device());
  try {
    gpu::launch(GAUGEBLOCK_KERNEL(store_outside), dim3(1), dim3(1), 0, context, y.data());
    ADD_FAILURE() << "did not throw";
  } catch (const gpu::DeviceError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("launches.cpp:"), std::string::npos) << error.what();
  }
  EXPECT_EQ(context.reports().size(), 1U);
  // The next launch is not affected.
  EXPECT_NO_THROW(gpu::launch(GAUGEBLOCK_KERNEL(store_index), dim3(2), dim3(3), 0, context, y.data()));
}

TEST(DeviceBuffer, StartsOutMarkedAndFindsDamage) {
  for (const std::int64_t offset : {0, 1, 3}) {
    gpu::DeviceBuffer buffer(gpu::simt_device(), 5, "x", offset);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 4U * offset);
    for (const float value : buffer.download())
      EXPECT_EQ(std::bit_cast<std::uint32_t>(value), gpu::marked_nan_bits);
    EXPECT_EQ(buffer.guard_damage(), std::nullopt);
    buffer.upload(std::vector<float>{1, 2, 3, 4, 5});
    EXPECT_EQ(buffer.download(), (std::vector<float>{1, 2, 3, 4, 5}));
    EXPECT_EQ(buffer.guard_damage(), std::nullopt);
    for (const int at : {-1, 5}) {  // what a kernel on a GPU would do
      const float kept = buffer.data()[at];
      buffer.data()[at] = 0;
      ASSERT_TRUE(buffer.guard_damage().has_value());
      EXPECT_NE(buffer.guard_damage()->find("element " + std::to_string(at) + " of 5"), std::string::npos)
          << *buffer.guard_damage();
      buffer.data()[at] = kept;
    }
    buffer.fill_marked();
    EXPECT_EQ(std::bit_cast<std::uint32_t>(buffer.download()[4]), gpu::marked_nan_bits);
  }
}

TEST(DeviceBuffer, ChecksRanges) {
  gpu::DeviceBuffer buffer = unwritten(4);
  float values[8] = {};
  EXPECT_THROW(buffer.upload(values, 5), std::out_of_range);
  EXPECT_THROW(buffer.upload(values, 2, 3), std::out_of_range);
  EXPECT_THROW(buffer.download(values, 1, -1), std::out_of_range);
  EXPECT_THROW(buffer.upload(values, std::numeric_limits<std::int64_t>::max(), 1), std::out_of_range);
  EXPECT_NO_THROW(buffer.upload(values, 0, 4));
}

/// Units a request of the only access of `space` in the kernel.
double units(const simt::LaunchRecord& record, simt::Space space) {
  for (const simt::LineCost& line : record.lines)
    if (line.space == space) return static_cast<double>(line.units) / static_cast<double>(line.requests);
  return -1;
}

TEST(Cost, WavefrontsOfSharedMemory) {
  const auto wavefronts = [](int stride, int width) {
    const auto record = interpret(threads(32, 1, 64 * 1024 - 16384), {}, [=] {
      GAUGEBLOCK_DYNAMIC_SHARED(float, tile);
      const int at = static_cast<int>(threadIdx.x) * stride;
      if (width == 1) tile[at] = 1;
      if (width == 2) simt::store_vector(tile, at, make_float2(1, 1));
      if (width == 4) simt::store_vector(tile, at, make_float4(1, 1, 1, 1));
    });
    return units(record, simt::Space::shared);
  };
  EXPECT_EQ(wavefronts(1, 1), 1);
  EXPECT_EQ(wavefronts(2, 1), 2);
  EXPECT_EQ(wavefronts(3, 1), 1);
  EXPECT_EQ(wavefronts(8, 1), 8);
  EXPECT_EQ(wavefronts(32, 1), 32);
  EXPECT_EQ(wavefronts(33, 1), 1);
  EXPECT_EQ(wavefronts(2, 2), 2);  // 256 bytes: two half warps
  EXPECT_EQ(wavefronts(4, 4), 4);  // 512 bytes: four quarter warps
  EXPECT_EQ(wavefronts(32, 4), 32);
  // One word read by all: one wavefront.
  const auto record = interpret(threads(32, 1, 4), {}, [] {
    GAUGEBLOCK_DYNAMIC_SHARED(float, cell);
    if (threadIdx.x == 0) cell[0] = 1;
    __syncwarp();
    const float all = cell[0];
    (void)all;
  });
  EXPECT_EQ(record.cost.shared_requests, 2U);
  EXPECT_EQ(record.cost.shared_wavefronts, 2U);
}

// What Nsight Compute counts on an H200 (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld and _st, one warp):
// the halves of a warp go together in a wide load when all lanes read in pairs, and never in a store.
TEST(Cost, WavefrontsOfWideAccessesAreThoseOfAnH200) {
  struct Pattern {
    int (*element)(int lane);  // in units of the access
    bool (*active)(int lane);
    int loads_of_8, stores_of_8, loads_of_16, stores_of_16;  // -1: not measured
  };
  const auto all = [](int) { return true; };
  const std::vector<Pattern> patterns{
      {[](int l) { return l; }, all, 2, 2, 4, 4},
      {[](int) { return 3; }, all, 1, 2, 2, 4},
      {[](int l) { return l / 2; }, all, 1, 2, 2, 4},
      {[](int l) { return l % 2; }, all, 1, 2, 2, 4},
      {[](int l) { return l / 8; }, all, 1, 2, 2, 4},
      {[](int l) { return l % 8; }, all, 2, 2, 4, 4},
      {[](int l) { return l % 16; }, all, 2, 2, 4, 4},
      {[](int l) { return 2 * l; }, all, 4, 4, 8, 8},
      {[](int l) { return l & ~2; }, all, 2, -1, 4, -1},
      {[](int l) { return l == 31 ? 40 : l / 2; }, all, 3, -1, 4, -1},
      {[](int l) { return l < 16 ? l / 2 : l; }, all, 2, -1, 4, -1},
      {[](int l) { return l < 16 ? l / 2 : l % 2 + 2; }, all, 2, -1, 4, -1},
      {[](int l) { return l == 0 ? 0 : 5; }, all, 2, -1, 4, -1},
      {[](int l) { return l; }, [](int l) { return l % 2 == 0; }, 2, 2, 4, 4},
      {[](int l) { return l; }, [](int l) { return l < 8; }, 1, 1, 1, 1},
  };
  for (std::size_t n = 0; n < patterns.size(); ++n) {
    const Pattern& pattern = patterns[n];
    const auto wavefronts = [&pattern](int floats, bool store) {
      const auto record = interpret(threads(32, 1, 4096), {}, [&] {
        GAUGEBLOCK_DYNAMIC_SHARED(float, tile);
        const int lane = static_cast<int>(threadIdx.x);
        if (!pattern.active(lane)) return;
        const int at = pattern.element(lane) * floats;
        if (store && floats == 2) simt::store_vector(tile, at, make_float2(1, 1));
        if (store && floats == 4) simt::store_vector(tile, at, make_float4(1, 1, 1, 1));
        if (!store && floats == 2) (void)simt::load_vector<float2>(tile, at);
        if (!store && floats == 4) (void)simt::load_vector<float4>(tile, at);
      });
      return units(record, simt::Space::shared);
    };
    EXPECT_EQ(wavefronts(2, false), pattern.loads_of_8) << n;
    EXPECT_EQ(wavefronts(4, false), pattern.loads_of_16) << n;
    if (pattern.stores_of_8 < 0) continue;
    EXPECT_EQ(wavefronts(2, true), pattern.stores_of_8) << n;
    EXPECT_EQ(wavefronts(4, true), pattern.stores_of_16) << n;
  }
}

TEST(Cost, SectorsOfGlobalMemory) {
  gpu::DeviceBuffer x = counting(4096), shifted = counting(4096, "shifted", 1);
  const auto sectors = [](const gpu::DeviceBuffer& buffer, int stride, int active, int width) {
    const auto record = interpret(threads(32), {}, [&] {
      const simt::Global<const float> in(buffer.data());
      const int at = static_cast<int>(threadIdx.x) * stride;
      if (static_cast<int>(threadIdx.x) >= active) return;
      if (width == 4) {
        const auto four = simt::load_vector<float4>(in, at);
        (void)four;
      } else {
        const float one = in[at];
        (void)one;
      }
    });
    return units(record, simt::Space::global);
  };
  EXPECT_EQ(sectors(x, 1, 32, 1), 4);
  EXPECT_EQ(sectors(shifted, 1, 32, 1), 5);
  EXPECT_EQ(sectors(x, 0, 32, 1), 1);
  EXPECT_EQ(sectors(x, 1, 24, 1), 3);
  EXPECT_EQ(sectors(x, 8, 32, 1), 32);
  EXPECT_EQ(sectors(x, 64, 32, 1), 32);
  EXPECT_EQ(sectors(x, 4, 32, 4), 16);
}

// Lanes that skip a load, or do it in another order, still share the requests they share on a GPU.
TEST(Cost, LanesOutOfStepShareRequests) {
  gpu::DeviceBuffer x = counting(64), y = unwritten(64);
  for (const simt::Options& options : all_schedules()) {
    const auto record = interpret(threads(32), options, [&] {
      const simt::Global<const float> in(x.data());
      const simt::Global<float> out(y.data());
      float value = 0;
      if (threadIdx.x >= 8) value = in[threadIdx.x];
      const float other = in[32 + threadIdx.x];
      if (threadIdx.x % 2 == 0) out[threadIdx.x] = value + other;
    });
    EXPECT_EQ(record.cost.global_requests, 3U);
    EXPECT_EQ(record.cost.global_sectors, 3U + 4U + 4U);
    EXPECT_EQ(record.lines.size(), 3U);
  }
}

TEST(Cost, BarriersAndExchanges) {
  const auto record = interpret(threads(64, 3), {}, [] {
    __syncthreads();
    float x = 1;
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(full, x, offset);
    __syncthreads();
  });
  EXPECT_EQ(record.cost.barriers, 6U);
  EXPECT_EQ(record.cost.exchanges, 3U * 2 * 5);
  ASSERT_EQ(record.lines.size(), 3U);
  EXPECT_EQ(record.lines[0].access, simt::Access::barrier);
  EXPECT_EQ(record.lines[0].requests, 3U);
  EXPECT_EQ(record.lines[1].access, simt::Access::exchange);
  EXPECT_EQ(record.lines[1].requests, 30U);
}

}  // namespace
}  // namespace gaugeblock::test
