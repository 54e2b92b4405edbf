// Every axial kernel against the definition in float64: under the interpreter, or on a GPU when compiled with
// GAUGEBLOCK_TEST_CUDA. Where there is no GPU, the latter says so and runs nothing.
//
// The tolerance is a plain one, relative to the largest |x| + |projected| of the problem: inputs are of size
// 1 and weights of size 1/√D, so float32's error is a few dozen units in the last place, while a wrong axis,
// head or key shows in the first digits. The derived bounds are the harness's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"
#include "tested_device.h"

// What the name of a parameterised test shows.
namespace gaugeblock::gpu {
void PrintTo(const AxialKernel& kernel, std::ostream* out) {
  *out << kernel.name;
}
}  // namespace gaugeblock::gpu

namespace {

using gaugeblock::AxialPasses;
using gaugeblock::Index;
using gaugeblock::TensorView;
namespace gpu = gaugeblock::gpu;
namespace simt = gaugeblock::simt;

const std::vector<gpu::AxialKernel>& kernels() {
  return gpu::GAUGEBLOCK_TESTED_BACKEND::axial_kernels();
}

class AxialKernels : public TestedDevice {};

const gpu::AxialKernel& kernel_named(const std::string& name) {
  for (const gpu::AxialKernel& kernel : kernels())
    if (kernel.name == name) return kernel;
  throw std::logic_error("no kernel " + name);
}

enum class Layout {
  contiguous,
  permuted,  // the two middle dimensions (of a weight: both) stored in the other order, gaps after every row
  misaligned,  // contiguous, but starting one element off a 16-byte boundary
};

/// A tensor on the device, its shape and strides, and its values in C order on the host.
template <int Rank>
struct Tensor {
  std::array<Index, Rank> shape, stride{};
  Index storage = 1;
  std::vector<float> values;
  gpu::DeviceBuffer buffer;

  Tensor(const std::array<Index, Rank>& shape_, Layout layout, const std::string& name)
      : shape(shape_), buffer(make(name, layout)) {}

  gpu::DeviceBuffer make(const std::string& name, Layout layout) {
    std::array<Index, Rank> order{};
    for (int r = 0; r < Rank; ++r) order[r] = r;
    if (layout == Layout::permuted && Rank == 4) std::swap(order[1], order[2]);
    if (layout == Layout::permuted && Rank == 2) std::swap(order[0], order[1]);
    Index step = 1, count = 1;
    for (int r = Rank - 1; r >= 0; --r) {
      stride[order[r]] = step;
      step *= shape[order[r]];
      if (layout == Layout::permuted) step += 3;
    }
    for (int r = 0; r < Rank; ++r) {
      storage += (shape[r] - 1) * stride[r];
      count *= shape[r];
    }
    values.resize(static_cast<std::size_t>(count));
    return gpu::DeviceBuffer(device(), storage, name, layout == Layout::misaligned ? 1 : 0);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    std::array<Index, Rank> at{};
    for (std::size_t n = 0; n < values.size(); ++n) {
      Index offset = 0;
      for (int r = 0; r < Rank; ++r) offset += at[r] * stride[r];
      visit(n, offset);
      for (int r = Rank - 1; r >= 0; --r) {
        if (++at[r] < shape[r]) break;
        at[r] = 0;
      }
    }
  }

  // Under the interpreter, gaps between the elements are not uploaded: reading one is reported. On a GPU they
  // are NaN.
  void upload() {
    if (std::string(device().backend()) == "simt") {
      for_each([&](std::size_t n, Index offset) { buffer.upload(&values[n], 1, offset); });
      return;
    }
    std::vector<float> all(static_cast<std::size_t>(storage), std::bit_cast<float>(gpu::marked_nan_bits));
    for_each([&](std::size_t n, Index offset) { all[offset] = values[n]; });
    buffer.upload(all);
  }

  // Elements into `values`; whatever lies in the gaps must still be the marked NaN.
  void download() {
    std::vector<float> all = buffer.download();
    for_each([&](std::size_t n, Index offset) {
      values[n] = all[offset];
      all[offset] = std::bit_cast<float>(gpu::marked_nan_bits);
    });
    for (const float gap : all) ASSERT_EQ(std::bit_cast<std::uint32_t>(gap), gpu::marked_nan_bits);
  }

  template <class T>
  TensorView<T, Rank> view() const {
    return {buffer.data(), shape, stride};
  }
};

struct Numbers {  // a plain linear congruential generator; the values need to be varied, not good
  std::uint64_t state;
  double unit() {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state >> 40) / 16777216.0;
  }
  void fill(std::vector<float>& values, double size, double middle = 0) {
    for (float& value : values) value = static_cast<float>(middle + size * (2 * unit() - 1));
  }
};

struct Parameters {
  Tensor<1> norm_weight, norm_bias;
  Tensor<2> qkv, out;
  Tensor<1> out_bias;

  Parameters(Index D, Layout layout, Numbers& numbers, double qkv_size)
      : norm_weight({D}, layout, "norm.weight"),
        norm_bias({D}, layout, "norm.bias"),
        qkv({3 * D, D}, layout, "qkv.weight"),
        out({D, D}, layout, "out.weight"),
        out_bias({D}, layout, "out.bias") {
    const double root = std::sqrt(static_cast<double>(D));
    numbers.fill(norm_weight.values, 0.5, 1);
    numbers.fill(norm_bias.values, 0.3);
    numbers.fill(qkv.values, qkv_size * 1.7 / root);
    numbers.fill(out.values, 1.7 / root);
    numbers.fill(out_bias.values, 0.5);
    norm_weight.upload();
    norm_bias.upload();
    qkv.upload();
    out.upload();
    out_bias.upload();
  }

  gaugeblock::AxialPassParameters views() const {
    return {norm_weight.view<const float>(), norm_bias.view<const float>(), qkv.view<const float>(),
            out.view<const float>(), out_bias.view<const float>()};
  }
};

struct Sizes {
  Index B, H, W, D, heads;
};

struct Problem {
  Sizes sizes;
  AxialPasses passes;
  bool wants_row;
  float eps = 1e-5F;
  Numbers numbers;
  Tensor<4> x, y, row;
  Parameters row_parameters, col_parameters;
  std::vector<double> expected_row, expected_y;
  double size = 0;   // the largest |x| + |projected| of any pass
  double worst = 0;  // error / size so far

  Problem(const Sizes& s, Layout layout, AxialPasses passes_, bool wants_row_, std::uint64_t seed,
          double qkv_size = 1)
      : sizes(s),
        passes(passes_),
        wants_row(wants_row_),
        numbers{seed},
        x({s.B, s.H, s.W, s.D}, layout, "x"),
        y({s.B, s.H, s.W, s.D}, layout, "y"),
        row({s.B, s.H, s.W, s.D}, layout, "row"),
        row_parameters(s.D, layout, numbers, qkv_size),
        col_parameters(s.D, layout, numbers, qkv_size) {
    numbers.fill(x.values, 1);
    x.upload();
    expect();
  }

  /// After a change to x.values.
  void expect() {
    expected_row.assign(x.values.begin(), x.values.end());
    size = 0;
    if (passes != AxialPasses::col) expected_row = pass(expected_row, row_parameters, true);
    expected_y = expected_row;
    if (passes != AxialPasses::row) expected_y = pass(expected_y, col_parameters, false);
  }

  /// The definition, one sequence after the other.
  std::vector<double> pass(const std::vector<double>& in, const Parameters& p, bool along_rows) {
    const auto [B, H, W, D, heads] = sizes;
    const Index others = along_rows ? H : W, L = along_rows ? W : H, d = D / heads;
    std::vector<double> result = in, n(D), qkv(L * 3 * D), o(L * D), weight(L);
    for (Index s = 0; s < B * others; ++s) {
      const auto token = [&](Index l) {
        const Index h = along_rows ? s % others : l, w = along_rows ? l : s % others;
        return ((s / others * H + h) * W + w) * D;
      };
      for (Index l = 0; l < L; ++l) {
        double mean = 0, variance = 0;
        for (Index i = 0; i < D; ++i) mean += in[token(l) + i] / D;
        for (Index i = 0; i < D; ++i) variance += (in[token(l) + i] - mean) * (in[token(l) + i] - mean) / D;
        for (Index i = 0; i < D; ++i)
          n[i] = (in[token(l) + i] - mean) / std::sqrt(variance + eps) * p.norm_weight.values[i] +
                 p.norm_bias.values[i];
        for (Index c = 0; c < 3 * D; ++c) {
          double& sum = qkv[l * 3 * D + c] = 0;
          for (Index i = 0; i < D; ++i) sum += n[i] * p.qkv.values[c * D + i];
        }
      }
      for (Index query = 0; query < L; ++query)
        for (Index head = 0; head < heads; ++head) {
          for (Index key = 0; key < L; ++key) {
            weight[key] = 0;
            for (Index i = head * d; i < head * d + d; ++i)
              weight[key] += qkv[query * 3 * D + i] * qkv[key * 3 * D + D + i] / std::sqrt(double(d));
          }
          const double largest = *std::max_element(weight.begin(), weight.end());
          double sum = 0;
          for (double& z : weight) sum += z = std::exp(z - largest);
          for (Index i = head * d; i < head * d + d; ++i) {
            o[query * D + i] = 0;
            for (Index key = 0; key < L; ++key)
              o[query * D + i] += weight[key] / sum * qkv[key * 3 * D + 2 * D + i];
          }
        }
      for (Index l = 0; l < L; ++l)
        for (Index c = 0; c < D; ++c) {
          double projected = p.out_bias.values[c];
          for (Index i = 0; i < D; ++i) projected += o[l * D + i] * p.out.values[c * D + i];
          result[token(l) + c] += projected;
          size = std::max(size, std::abs(in[token(l) + c]) + std::abs(projected));
        }
    }
    return result;
  }

  gpu::AxialArguments arguments() const {
    gpu::AxialArguments result;
    result.x = x.view<const float>();
    if (passes != AxialPasses::col) result.row = row_parameters.views();
    if (passes != AxialPasses::row) result.col = col_parameters.views();
    result.heads = sizes.heads;
    result.eps = eps;
    result.passes = passes;
    result.y = y.view<float>();
    if (wants_row) result.row_result = row.view<float>();
    return result;
  }

  void check(double tolerance) {
    y.download();
    std::vector<const gpu::DeviceBuffer*> buffers{&x.buffer, &y.buffer, &row.buffer};
    for (const Parameters* p : {&row_parameters, &col_parameters})
      for (const gpu::DeviceBuffer* buffer : {&p->norm_weight.buffer, &p->norm_bias.buffer, &p->qkv.buffer,
                                              &p->out.buffer, &p->out_bias.buffer})
        buffers.push_back(buffer);
    for (const gpu::DeviceBuffer* buffer : buffers) ASSERT_EQ(buffer->guard_damage(), std::nullopt);
    compare(y, expected_y, tolerance, "y");
    if (!wants_row) return;
    row.download();
    compare(row, expected_row, passes == AxialPasses::col ? 0 : tolerance, "row");
  }

  void compare(const Tensor<4>& actual, const std::vector<double>& expected, double tolerance,
               const char* name) {
    for (std::size_t n = 0; n < expected.size(); ++n) {
      const double error = std::abs(actual.values[n] - expected[n]);
      ASSERT_TRUE(error <= tolerance * size)
          << name << "[" << n << "] = " << actual.values[n] << ", not " << expected[n];
      worst = std::max(worst, error / size);
    }
  }
};

// Both passes' errors: LayerNorm may magnify the first one's by weight / spread.
constexpr double usual_tolerance = 4e-6;

std::vector<std::uint32_t> bits(const gpu::DeviceBuffer& buffer) {
  std::vector<std::uint32_t> result;
  for (const float value : buffer.download()) result.push_back(std::bit_cast<std::uint32_t>(value));
  return result;
}

/// One kernel on one problem under one schedule. False when the kernel declines.
bool run(const gpu::AxialKernel& kernel, Problem& problem, simt::Schedule schedule,
         double tolerance = usual_tolerance) {
  const auto& [B, H, W, D, heads] = problem.sizes;
  SCOPED_TRACE(kernel.name + " B=" + std::to_string(B) + " H=" + std::to_string(H) +
               " W=" + std::to_string(W) + " D=" + std::to_string(D) + " heads=" + std::to_string(heads) +
               " passes " + std::to_string(static_cast<int>(problem.passes)) + " schedule " +
               std::to_string(static_cast<int>(schedule)));
  const gpu::AxialArguments arguments = problem.arguments();
  if (kernel.declines(arguments)) return false;
  problem.y.buffer.fill_marked();
  problem.row.buffer.fill_marked();
  gpu::LaunchContext context(device());
  context.simt = {schedule, 7, true};
  const std::vector<std::uint32_t> x_before = bits(problem.x.buffer);
  EXPECT_NO_THROW(kernel.run(arguments, context));
  EXPECT_EQ(bits(problem.x.buffer), x_before);
  for (const simt::Report& report : context.reports()) ADD_FAILURE() << report.text();
  problem.check(tolerance);
  return true;
}

constexpr std::array schedules{simt::Schedule::in_order, simt::Schedule::reversed, simt::Schedule::random};
constexpr std::array all_passes{AxialPasses::both, AxialPasses::row, AxialPasses::col};

class AxialKernelTest : public AxialKernels, public testing::WithParamInterface<gpu::AxialKernel> {};

/// Why a kernel for one architecture leaves a problem out; those for any GPU take every problem of these tests.
std::optional<std::string> left_out(const gpu::AxialKernel& kernel, const Problem& problem) {
  if (kernel.architecture.empty()) return std::nullopt;
  return kernel.declines(problem.arguments());
}

// H ≠ W and L ≠ heads throughout, so that no axis or index can stand in for another. Lengths around the tile
// of 16 and the warp of 32; heads of 1, 3, 16 and 24 channels. The last two are all that every kernel takes.
TEST_P(AxialKernelTest, EqualsTheDefinitionAtEverySize) {
  const std::vector<Sizes> all{{1, 1, 1, 1, 1},  {1, 1, 2, 3, 3},   {2, 2, 3, 3, 1},  {1, 9, 12, 6, 2},
                               {2, 3, 2, 16, 1}, {1, 12, 1, 24, 8}, {1, 31, 2, 6, 2}, {1, 2, 33, 9, 3},
                               {1, 2, 1, 48, 2}, {1, 1, 17, 32, 2}, {1, 3, 15, 4, 4}, {1, 2, 3, 33, 11},
                               {1, 2, 9, 72, 3}, {1, 16, 1, 17, 1}, {1, 1, 32, 4, 1}, {1, 3, 17, 64, 4},
                               {1, 2, 5, 128, 8}};
  double worst = 0;
  bool taken = false;
  for (std::size_t n = 0; n < all.size(); ++n) {
    Problem problem(all[n], Layout::contiguous, all_passes[n % 4 == 3 ? n / 4 % 2 + 1 : 0], n % 2 == 0, n);
    if (left_out(GetParam(), problem)) continue;
    EXPECT_TRUE(run(GetParam(), problem, schedules[n % 3]));
    worst = std::max(worst, problem.worst);
    taken = true;
  }
  EXPECT_TRUE(taken) << "no size was tried";
  RecordProperty("worst_error_over_tolerance", std::to_string(worst / usual_tolerance));
}

TEST_P(AxialKernelTest, TakesEveryLayoutUnderEverySchedule) {
  for (const Layout layout : {Layout::contiguous, Layout::permuted, Layout::misaligned}) {
    Problem problem({2, 3, 5, 6, 2}, layout, AxialPasses::both, true, 11);
    if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
    for (const simt::Schedule schedule : schedules) EXPECT_TRUE(run(GetParam(), problem, schedule));
  }
}

TEST_P(AxialKernelTest, RunsThePassesAskedForWithAndWithoutTheRowResult) {
  for (const AxialPasses passes : all_passes)
    for (const bool wants_row : {false, true}) {
      Problem problem({1, 2, 3, 4, 2}, Layout::permuted, passes, wants_row, 5);
      if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
      EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::random));
    }
}

// One token for all of a row, one bias for all channels: strides of 0.
TEST_P(AxialKernelTest, TakesStridesOfZero) {
  Problem problem({1, 3, 4, 6, 2}, Layout::contiguous, AxialPasses::row, false, 3);
  if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
  for (Index n = 0; n < 3 * 4 * 6; ++n) problem.x.values[n] = problem.x.values[n / 24 * 24 + n % 6];
  std::fill(problem.row_parameters.out_bias.values.begin(), problem.row_parameters.out_bias.values.end(),
            problem.row_parameters.out_bias.values[0]);
  problem.x.upload();
  problem.row_parameters.out_bias.upload();
  problem.x.stride[2] = 0;
  problem.row_parameters.out_bias.stride[0] = 0;
  problem.expect();
  EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::in_order));
}

// More sequences than the y or z axis of a grid holds.
TEST_P(AxialKernelTest, TakesManySequences) {
  Problem problem({65537, 1, 1, 1, 1}, Layout::contiguous, AxialPasses::row, false, 9);
  if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
  EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::in_order));
}

// A variance of exactly 0: LayerNorm gives its bias, and nothing divides by 0. The tolerance is a few units
// in the last place of 1234, so that an error of the small projected part shows beside it.
TEST_P(AxialKernelTest, TakesConstantRows) {
  Problem problem({1, 1, 4, 64, 4}, Layout::contiguous, AxialPasses::row, false, 2);
  std::fill(problem.x.values.begin(), problem.x.values.end(), 1234.0F);
  problem.x.upload();
  problem.expect();
  EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::in_order, 0x1p-22));
}

// Logits of hundreds: the largest is taken out before exp, so the weights are near one-hot and finite. A
// logit's error of some 1e-4 is one of the weight.
TEST_P(AxialKernelTest, TakesLargeLogits) {
  Problem problem({1, 3, 8, 16, 2}, Layout::contiguous, AxialPasses::row, false, 4, 12);
  if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
  EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::in_order, 1e-3));
}

// A token that is not a number spoils its own sequence and no other.
TEST_P(AxialKernelTest, KeepsNaNInItsSequence) {
  Problem problem({1, 3, 5, 6, 2}, Layout::contiguous, AxialPasses::row, false, 8);
  if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
  problem.x.values[(1 * 5 + 2) * 6 + 1] = std::bit_cast<float>(0x7fc00000U);
  problem.x.upload();
  gpu::LaunchContext context(device());
  GetParam().run(problem.arguments(), context);
  problem.y.download();
  for (Index n = 0; n < 3 * 5 * 6; ++n)
    EXPECT_EQ(std::isnan(problem.y.values[n]), n / 30 == 1) << GetParam().name << " y[" << n << "]";
}

TEST_P(AxialKernelTest, GivesTheSameBitsUnderEverySchedule) {
  Problem problem({1, 5, 7, 24, 3}, Layout::contiguous, AxialPasses::both, false, 21);
  if (const auto reason = left_out(GetParam(), problem)) GTEST_SKIP() << *reason;
  ASSERT_TRUE(run(GetParam(), problem, simt::Schedule::in_order));
  const std::vector<float> y = problem.y.values;
  for (const simt::Schedule schedule : {simt::Schedule::reversed, simt::Schedule::random}) {
    run(GetParam(), problem, schedule);
    EXPECT_EQ(problem.y.values, y);
  }
}

INSTANTIATE_TEST_SUITE_P(AllKernels, AxialKernelTest, testing::ValuesIn(kernels()),
                         [](const auto& kernel) { return kernel.param.name; });

// Where data comes from and in what order threads take it changes nothing: these kernels add and multiply the
// same numbers in the same order. The others differ in the softmax, or add in another order.
TEST_F(AxialKernels, GiveTheSameBitsWhereTheArithmeticIsTheSame) {
  Problem problem({2, 5, 7, 24, 3}, Layout::permuted, AxialPasses::both, true, 17);
  ASSERT_TRUE(run(kernel_named("fused_row_column"), problem, simt::Schedule::in_order));
  const std::vector<float> y = problem.y.values, row = problem.row.values;
  for (const char* name : {"permuted_column", "thread_per_token_head", "stored_scores", "row_major_weights",
                           "conflict_free", "in_place"}) {
    ASSERT_TRUE(run(kernel_named(name), problem, simt::Schedule::in_order));
    EXPECT_EQ(problem.y.values, y) << name;
    EXPECT_EQ(problem.row.values, row) << name;
  }
}

// 128 tokens of 64 channels need more than the 48 KB a block has without asking; 512 do not fit at all.
TEST_F(AxialKernels, TakeLongSequencesOrDeclineThem) {
  Problem fitting({1, 1, 128, 64, 4}, Layout::contiguous, AxialPasses::row, false, 1);
  for (const gpu::AxialKernel& kernel : kernels())
    EXPECT_TRUE(run(kernel, fitting, simt::Schedule::in_order)) << kernel.name;

  Problem longer({1, 512, 1, 64, 4}, Layout::contiguous, AxialPasses::row, false, 1);
  longer.passes = AxialPasses::both;
  for (const gpu::AxialKernel& kernel : kernels()) {
    const auto reason = kernel.declines(longer.arguments());
    const bool takes_any_length = kernel.name == "tiled" || kernel.name == "fused_pass_split_half";
    EXPECT_EQ(reason.has_value(), !takes_any_length) << kernel.name;
    if (reason) {
      EXPECT_NE(reason->find("column pass: "), std::string::npos) << kernel.name << ": " << *reason;
    }
  }
}

TEST_F(AxialKernels, TakeManyChannelsOrDeclineThem) {
  Problem wide({1, 1, 2, 1056, 4}, Layout::contiguous, AxialPasses::row, false, 1);
  for (const gpu::AxialKernel& kernel : kernels()) {
    if (const auto reason = kernel.declines(wide.arguments())) {
      const std::string found = kernel.architecture.empty() ? "D = 1056" : "1056 channels";
      EXPECT_NE(reason->find(found), std::string::npos) << kernel.name << ": " << *reason;
    } else if (kernel.name == "tiled" || kernel.name == "online_softmax") {
      EXPECT_TRUE(run(kernel, wide, simt::Schedule::in_order));
    }
  }
  EXPECT_TRUE(kernel_named("fused_row_column").declines(wide.arguments()));
  EXPECT_FALSE(kernel_named("tiled").declines(wide.arguments()));
}

#if !defined(GAUGEBLOCK_TEST_CUDA)
/// Cost of the launches of one run whose kernel's name begins with `kernel`.
simt::LaunchCost cost_of(const std::string& name, const Sizes& sizes, const std::string& kernel) {
  Problem problem(sizes, Layout::contiguous, AxialPasses::both, false, 6);
  gpu::LaunchContext context(device());
  kernel_named(name).run(problem.arguments(), context);
  simt::LaunchCost sum;
  for (const simt::LaunchRecord& launch : context.launches)
    if (launch.kernel.rfind(kernel, 0) == 0) {
      sum.shared_requests += launch.cost.shared_requests;
      sum.shared_wavefronts += launch.cost.shared_wavefronts;
      sum.global_sectors += launch.cost.global_sectors;
    }
  return sum;
}

// One wavefront a request, whatever the sizes: multiples of 32, none, several heads in a warp, an even and an
// odd L.
TEST_F(AxialKernels, ConflictFreeHasNoBankConflict) {
  for (const Sizes& sizes : {Sizes{1, 2, 32, 64, 4}, Sizes{1, 3, 8, 32, 8}, Sizes{1, 2, 33, 24, 3},
                             Sizes{1, 12, 5, 40, 20}, Sizes{1, 4, 34, 9, 9}}) {
    const simt::LaunchCost cost = cost_of("conflict_free", sizes, "conflict_free_kernel");
    EXPECT_GT(cost.shared_requests, 0U);
    EXPECT_EQ(cost.shared_wavefronts, cost.shared_requests) << sizes.D;
  }
  const simt::LaunchCost plain = cost_of("fused_row_column", {1, 2, 32, 64, 4}, "fused_pass_kernel");
  EXPECT_GT(plain.shared_wavefronts, 2 * plain.shared_requests);
}

// Side by side, eight threads' weights share a sector of 32 bytes; a row apart, each has its own.
TEST_F(AxialKernels, RowMajorWeightsCostMoreSectors) {
  const Sizes quoted_row{1, 1, 32, 64, 4};
  const simt::LaunchCost transposed = cost_of("fused_row_column", quoted_row, "fused_pass_kernel");
  const simt::LaunchCost row_major = cost_of("row_major_weights", quoted_row, "fused_pass_kernel");
  EXPECT_GT(row_major.global_sectors, 6 * transposed.global_sectors);
}
#endif

}  // namespace
