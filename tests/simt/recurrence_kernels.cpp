// Every recurrence kernel against the definition in float64: under the interpreter, or on a GPU when compiled
// with GAUGEBLOCK_TEST_CUDA. Where there is no GPU, the latter says so and runs nothing.
//
// The bound is elementary: with u = 2^-24, a kernel that adds and multiplies each of the terms of
//     y_t[j] = Σ_i q_t[i] · Σ_s (Π gate) beta_s k_s[i] v_s[j]
// a bounded number of times errs by at most a small multiple of (T + K) u Σ |terms|.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"
#include "tested_device.h"

// What the name of a parameterised test shows.
namespace gaugeblock::gpu {
void PrintTo(const RecurrenceKernel& kernel, std::ostream* out) {
  *out << kernel.name;
}
}  // namespace gaugeblock::gpu

namespace {

using gaugeblock::Index;
using gaugeblock::TensorView;
namespace gpu = gaugeblock::gpu;
namespace simt = gaugeblock::simt;

const std::vector<gpu::RecurrenceKernel>& kernels() {
  return gpu::GAUGEBLOCK_TESTED_BACKEND::recurrence_kernels();
}

class RecurrenceKernels : public TestedDevice {};

enum class Layout {
  contiguous,
  permuted,   // dimensions stored in the reverse order of the heads and steps, with gaps after every row
  misaligned  // contiguous, but starting one element off a 16-byte boundary
};

struct Sizes {
  Index B, T, H, K, V;
};

enum class Gates { any, nonzero, zeros_inside };

/// A tensor on the device, its shape and strides, and its values in C order on the host.
template <int Rank>
struct Tensor {
  std::array<Index, Rank> shape;
  std::array<Index, Rank> stride;
  Index storage;
  std::vector<float> values;
  gpu::DeviceBuffer buffer;

  Tensor(gpu::Device& on, const std::array<Index, Rank>& shape_, Layout layout, const std::string& name)
      : shape(shape_), stride(strides(shape_, layout)), storage(1), buffer(make(on, name, layout)) {
    Index count = 1;
    for (const Index extent : shape) count *= extent;
    values.resize(static_cast<std::size_t>(count));
  }

  static std::array<Index, Rank> strides(const std::array<Index, Rank>& shape, Layout layout) {
    std::array<Index, Rank> order{}, stride{};
    for (int d = 0; d < Rank; ++d) order[d] = d;
    if (layout == Layout::permuted) std::swap(order[1], order[2]);
    Index step = 1;
    for (int d = Rank - 1; d >= 0; --d) {
      stride[order[d]] = step;
      step *= shape[order[d]];
      if (layout == Layout::permuted) step += 3;
    }
    return stride;
  }

  gpu::DeviceBuffer make(gpu::Device& on, const std::string& name, Layout layout) {
    bool empty = false;
    for (int d = 0; d < Rank; ++d) {
      storage += (shape[d] - 1) * stride[d];
      empty = empty || shape[d] == 0;
    }
    if (empty) storage = 0;
    return gpu::DeviceBuffer(on, storage, name, layout == Layout::misaligned ? 1 : 0);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    std::array<Index, Rank> at{};
    for (std::size_t n = 0; n < values.size(); ++n) {
      Index offset = 0;
      for (int d = 0; d < Rank; ++d) offset += at[d] * stride[d];
      visit(n, offset);
      for (int d = Rank - 1; d >= 0; --d) {
        if (++at[d] < shape[d]) break;
        at[d] = 0;
      }
    }
  }

  // Under the interpreter, gaps between the elements are not uploaded: reading one is reported. On a GPU they
  // are NaN.
  void upload(gpu::Device& on) {
    if (std::string(on.backend()) == "simt") {
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
};

struct Problem {
  gpu::Device* on;
  Sizes sizes;
  Tensor<4> q, k, v, initial_state, y, final_state;
  Tensor<3> gate, beta;
  bool has_state;

  Problem(const Sizes& s, Layout layout, Gates gates, bool has_state_, std::uint64_t seed,
          gpu::Device& on_ = device())
      : on(&on_),
        sizes(s),
        q(on_, {s.B, s.T, s.H, s.K}, layout, "q"),
        k(on_, {s.B, s.T, s.H, s.K}, layout, "k"),
        v(on_, {s.B, s.T, s.H, s.V}, layout, "v"),
        initial_state(on_, {s.B, s.H, s.K, s.V}, layout, "initial_state"),
        y(on_, {s.B, s.T, s.H, s.V}, layout, "y"),
        final_state(on_, {s.B, s.H, s.K, s.V}, layout, "final_state"),
        gate(on_, {s.B, s.T, s.H}, layout, "gate"),
        beta(on_, {s.B, s.T, s.H}, layout, "beta"),
        has_state(has_state_) {
    Numbers numbers{seed};
    for (Tensor<4>* tensor : {&q, &k, &v, &initial_state})
      for (float& value : tensor->values) value = static_cast<float>(2 * numbers.unit() - 1);
    for (float& value : gate.values) value = static_cast<float>(0.7 + 0.4 * numbers.unit());
    if (gates == Gates::any)
      for (float& value : gate.values)
        if (numbers.unit() < 0.2) value = -value;
    if (gates == Gates::zeros_inside)
      for (std::size_t n = 0; n < gate.values.size(); n += 5) gate.values[n] = 0;
    for (float& value : beta.values) value = static_cast<float>(2 * numbers.unit() - 0.5);
    q.upload(*on);
    k.upload(*on);
    v.upload(*on);
    gate.upload(*on);
    beta.upload(*on);
    if (has_state) initial_state.upload(*on);
  }

  gpu::RecurrenceArguments arguments() const {
    gpu::RecurrenceArguments result;
    result.q = q.view<const float>();
    result.k = k.view<const float>();
    result.v = v.view<const float>();
    result.gate = gate.view<const float>();
    result.beta = beta.view<const float>();
    if (has_state) result.initial_state = initial_state.view<const float>();
    result.y = y.view<float>();
    result.final_state = final_state.view<float>();
    return result;
  }

  void reset_outputs() {
    y.buffer.fill_marked();
    final_state.buffer.fill_marked();
  }

  void check() {
    y.download();
    final_state.download();
    for (const gpu::DeviceBuffer* buffer : {&q.buffer, &k.buffer, &v.buffer, &initial_state.buffer, &y.buffer,
                                            &final_state.buffer, &gate.buffer, &beta.buffer})
      ASSERT_EQ(buffer->guard_damage(), std::nullopt);
    const auto [B, T, H, K, V] = sizes;
    const double factor = 8.0 * static_cast<double>(T + K + 4) * 0x1p-24;
    std::vector<double> state(K), size(K);
    for (Index b = 0; b < B; ++b)
      for (Index h = 0; h < H; ++h)
        for (Index j = 0; j < V; ++j) {
          for (Index i = 0; i < K; ++i) {
            state[i] = has_state ? initial_state.values[((b * H + h) * K + i) * V + j] : 0;
            size[i] = std::abs(state[i]);
          }
          for (Index t = 0; t < T; ++t) {
            const Index step = (b * T + t) * H + h;
            const double g = gate.values[step], bv = double(beta.values[step]) * v.values[step * V + j];
            double sum = 0, sum_size = 0;
            for (Index i = 0; i < K; ++i) {
              const double ki = k.values[step * K + i], qi = q.values[step * K + i];
              state[i] = g * state[i] + ki * bv;
              size[i] = std::abs(g) * size[i] + std::abs(ki * bv);
              sum += qi * state[i];
              sum_size += std::abs(qi) * size[i];
            }
            const double error = std::abs(y.values[step * V + j] - sum);
            ASSERT_TRUE(error <= factor * sum_size) << "y[" << b << "," << t << "," << h << "," << j
                                                    << "] = " << y.values[step * V + j] << ", not " << sum;
          }
          for (Index i = 0; i < K; ++i) {
            const float actual = final_state.values[((b * H + h) * K + i) * V + j];
            ASSERT_TRUE(std::abs(actual - state[i]) <= factor * size[i])
                << "final_state[" << b << "," << h << "," << i << "," << j << "] = " << actual << ", not "
                << state[i];
          }
        }
  }
};

/// One kernel on one problem under one schedule. False when the kernel declines.
bool run(const gpu::RecurrenceKernel& kernel, Problem& problem, simt::Schedule schedule) {
  SCOPED_TRACE(kernel.name + " B=" + std::to_string(problem.sizes.B) +
               " T=" + std::to_string(problem.sizes.T) + " H=" + std::to_string(problem.sizes.H) +
               " K=" + std::to_string(problem.sizes.K) + " V=" + std::to_string(problem.sizes.V) +
               " schedule " + std::to_string(static_cast<int>(schedule)));
  const gpu::RecurrenceArguments arguments = problem.arguments();
  if (kernel.declines(arguments)) return false;
  problem.reset_outputs();
  gpu::LaunchContext context(*problem.on);
  context.simt = {schedule, 7, true};
  EXPECT_NO_THROW(kernel.run(arguments, context));
  for (const simt::Report& report : context.reports()) ADD_FAILURE() << report.text();
  problem.check();
  return true;
}

constexpr std::array schedules{simt::Schedule::in_order, simt::Schedule::reversed, simt::Schedule::random};

Gates gates_for(const gpu::RecurrenceKernel& kernel, Gates wanted) {
  return kernel.form == "prefix_product" ? Gates::nonzero : wanted;
}

class RecurrenceKernelTest : public RecurrenceKernels,
                             public testing::WithParamInterface<gpu::RecurrenceKernel> {};

// Every value of K, V and T meets several of the others; large K and V with few steps, many steps with small
// K and V.
TEST_P(RecurrenceKernelTest, EqualsTheDefinitionAtEverySize) {
  const std::vector<Sizes> all{
      {1, 1, 1, 1, 1},    {2, 17, 2, 1, 3},   {1, 33, 2, 3, 1},   {1, 0, 2, 3, 5},     {2, 2, 3, 3, 24},
      {2, 33, 2, 24, 24}, {1, 17, 1, 24, 33}, {1, 2, 2, 31, 32},  {1, 17, 1, 32, 31},  {1, 33, 1, 33, 3},
      {1, 2, 1, 48, 64},  {1, 17, 1, 64, 1},  {1, 2, 1, 100, 33}, {1, 1, 1, 128, 128}, {1, 17, 1, 128, 3},
      {1, 1, 1, 3, 100},  {1, 2, 1, 1, 128},  {1, 0, 1, 128, 1},  {1, 17, 1, 5, 7},    {1, 2, 1, 24, 48},
      {1, 33, 1, 16, 16}, {1, 2, 2, 8, 4},    {3, 1, 2, 32, 32},  {1, 128, 1, 24, 8},  {2, 65, 1, 9, 4}};
  int taken = 0;
  for (std::size_t n = 0; n < all.size(); ++n) {
    Problem problem(all[n], Layout::contiguous, gates_for(GetParam(), Gates::any), n % 2 == 0, n);
    taken += run(GetParam(), problem, schedules[n % 3]) ? 1 : 0;
  }
  EXPECT_GE(taken, 10);
}

TEST_P(RecurrenceKernelTest, TakesEveryLayoutUnderEverySchedule) {
  for (const Layout layout : {Layout::contiguous, Layout::permuted, Layout::misaligned})
    for (const Sizes& sizes : {Sizes{2, 5, 3, 24, 4}, Sizes{1, 19, 2, 7, 10}, Sizes{1, 3, 1, 40, 12}}) {
      Problem problem(sizes, layout, gates_for(GetParam(), Gates::any), true, 11);
      for (const simt::Schedule schedule : schedules) run(GetParam(), problem, schedule);
    }
}

// A gate of 0 restarts: nothing of the past may come through, not even as 0 · infinity.
TEST_P(RecurrenceKernelTest, TakesGatesOfZero) {
  Problem problem({2, 23, 2, 6, 5}, Layout::contiguous, gates_for(GetParam(), Gates::zeros_inside), true, 5);
  run(GetParam(), problem, simt::Schedule::random);
}

// A stride of 0: one gate and one beta for all heads.
TEST_P(RecurrenceKernelTest, TakesStridesOfZero) {
  Problem problem({1, 4, 3, 6, 5}, Layout::contiguous, gates_for(GetParam(), Gates::any), false, 3);
  for (Index t = 0; t < 4; ++t)
    for (Index h = 1; h < 3; ++h) problem.gate.values[t * 3 + h] = problem.gate.values[t * 3];
  problem.gate.upload(device());
  problem.gate.stride[2] = 0;
  run(GetParam(), problem, simt::Schedule::in_order);
}

// More (b,h) than the y or z axis of a grid holds.
TEST_P(RecurrenceKernelTest, TakesManyBatches) {
  Problem problem({65537, 1, 1, 1, 1}, Layout::contiguous, gates_for(GetParam(), Gates::any), false, 9);
  EXPECT_TRUE(run(GetParam(), problem, simt::Schedule::in_order));
}

TEST_P(RecurrenceKernelTest, GivesTheSameBitsUnderEverySchedule) {
  Problem problem({1, 19, 2, 24, 6}, Layout::contiguous, gates_for(GetParam(), Gates::any), true, 21);
  ASSERT_TRUE(run(GetParam(), problem, simt::Schedule::in_order));
  const std::vector<float> y = problem.y.values, final_state = problem.final_state.values;
  for (const simt::Schedule schedule : {simt::Schedule::reversed, simt::Schedule::random}) {
    run(GetParam(), problem, schedule);
    EXPECT_EQ(problem.y.values, y);
    EXPECT_EQ(problem.final_state.values, final_state);
  }
}

INSTANTIATE_TEST_SUITE_P(AllKernels, RecurrenceKernelTest, testing::ValuesIn(kernels()),
                         [](const auto& kernel) { return kernel.param.name; });

const gpu::RecurrenceKernel& kernel_named(const std::string& name) {
  for (const gpu::RecurrenceKernel& kernel : kernels())
    if (kernel.name == name) return kernel;
  throw std::logic_error("no kernel " + name);
}

#if defined(GAUGEBLOCK_TEST_CUDA)
// Every operation is written out, fused multiply-adds included, so both backends round alike.
TEST_F(RecurrenceKernels, GiveTheBitsOfTheInterpreter) {
  for (std::size_t n = 0; n < gpu::simt_backend::recurrence_kernels().size(); ++n)
    for (const Sizes& sizes : {Sizes{2, 33, 2, 24, 24}, Sizes{1, 17, 2, 7, 10}, Sizes{1, 5, 1, 100, 33}}) {
      const gpu::RecurrenceKernel& kernel = kernels()[n];
      const gpu::RecurrenceKernel& interpreted = gpu::simt_backend::recurrence_kernels()[n];
      Problem here(sizes, Layout::contiguous, gates_for(kernel, Gates::any), true, 4, gpu::simt_device());
      Problem there(sizes, Layout::contiguous, gates_for(kernel, Gates::any), true, 4, device());
      if (!run(interpreted, here, simt::Schedule::in_order)) continue;
      ASSERT_TRUE(run(kernel, there, simt::Schedule::in_order));
      EXPECT_EQ(here.y.values, there.y.values) << kernel.name;
      EXPECT_EQ(here.final_state.values, there.final_state.values) << kernel.name;
    }
}
#else
// 16-byte accesses where rows allow them, and none where they do not.
TEST_F(RecurrenceKernels, VectorLoadsAreUsedWhereAligned) {
  const auto widest = [](const Sizes& sizes, Layout layout) {
    Problem problem(sizes, layout, Gates::any, false, 2);
    gpu::LaunchContext context(device());
    kernel_named("vector_loads").run(problem.arguments(), context);
    int bytes = 0;
    for (const simt::LineCost& line : context.launches.at(0).lines)
      if (line.space == simt::Space::global && line.access == simt::Access::load)
        bytes = std::max(bytes, line.bytes);
    return bytes;
  };
  EXPECT_EQ(widest({1, 3, 2, 24, 5}, Layout::contiguous), 16);
  EXPECT_EQ(widest({1, 3, 2, 7, 24}, Layout::contiguous), 16);  // v alone
  EXPECT_EQ(widest({1, 3, 2, 7, 5}, Layout::contiguous), 4);
  EXPECT_EQ(widest({1, 3, 2, 24, 24}, Layout::misaligned), 4);
  EXPECT_EQ(widest({1, 3, 2, 24, 24}, Layout::permuted), 4);
}

#endif

// The closed form divides by a product of gates: with a gate of 0 it must decline, not divide by 0.
TEST_F(RecurrenceKernels, ThePrefixProductDeclinesOutsideItsRange) {
  Problem problem({2, 5, 2, 3, 2}, Layout::contiguous, Gates::nonzero, false, 2);
  problem.gate.values[(1 * 5 + 3) * 2 + 1] = 0;
  problem.gate.upload(device());
  gpu::LaunchContext context(device());
  try {
    kernel_named("prefix_product").run(problem.arguments(), context);
    ADD_FAILURE() << "did not decline";
  } catch (const gpu::Declined& reason) {
    EXPECT_NE(std::string(reason.what()).find("b=1, t=3, h=1"), std::string::npos) << reason.what();
  }
  for (const float y : problem.y.buffer.download())
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y), gpu::marked_nan_bits);
}

// Nothing but the contraction leaves the range: |P| = 2^-100 keeps the divided writes below 2^120, a q of
// 2^30 does not keep the sum below 2^126.
TEST_F(RecurrenceKernels, ThePrefixProductDeclinesALargeContraction) {
  for (const float last_q : {1.0F, 0x1p30F}) {
    Problem problem({1, 5, 1, 3, 2}, Layout::contiguous, Gates::nonzero, false, 2);
    for (float& gate : problem.gate.values) gate = 0x1p-20F;
    problem.gate.upload(device());
    problem.q.values.back() = last_q;
    problem.q.upload(device());
    gpu::LaunchContext context(device());
    if (last_q == 1)
      EXPECT_NO_THROW(kernel_named("prefix_product").run(problem.arguments(), context));
    else
      EXPECT_THROW(kernel_named("prefix_product").run(problem.arguments(), context), gpu::Declined);
    EXPECT_TRUE(run(kernel_named("prefix_product_segmented"), problem, simt::Schedule::in_order));
  }
}

// Every part of the range is found wherever it lies: here in the second batch and step, and, for rows that pass
// a warp's width, in either of the elements that a lane has.
TEST_F(RecurrenceKernels, ThePrefixProductLooksAtEveryElement) {
  constexpr Index K = 40, V = 36, row = 3;  // row 3 of four: b = 1, t = 1
  using Change = std::function<void(Problem&)>;
  const std::vector<std::pair<std::string, Change>> changes{
      {"beta", [](Problem& p) { p.beta.values[row] = 0x1p120F; }},
      {"q, first element of a lane", [](Problem& p) { p.q.values[row * K + 3] = 0x1p126F; }},
      {"q, a lane of the upper half", [](Problem& p) { p.q.values[row * K + 19] = 0x1p126F; }},
      {"k and v, lanes of the upper half",
       [](Problem& p) { p.k.values[row * K + 20] = p.v.values[row * V + 21] = 0x1p60F; }},
      {"q, second element of a lane", [](Problem& p) { p.q.values[row * K + 35] = 0x1p126F; }},
      {"k and v, first elements",
       [](Problem& p) { p.k.values[row * K + 1] = p.v.values[row * V + 2] = 0x1p60F; }},
      {"k and v, second elements",
       [](Problem& p) { p.k.values[row * K + 39] = p.v.values[row * V + 35] = 0x1p60F; }},
  };
  for (const auto& [name, change] : changes) {
    Problem problem({2, 2, 1, K, V}, Layout::contiguous, Gates::nonzero, false, 2);
    for (float& gate : problem.gate.values) gate = 1;
    for (float& beta : problem.beta.values) beta = 1;
    change(problem);
    problem.gate.upload(device());
    problem.beta.upload(device());
    problem.q.upload(device());
    problem.k.upload(device());
    problem.v.upload(device());
    gpu::LaunchContext context(device());
    try {
      kernel_named("prefix_product").run(problem.arguments(), context);
      ADD_FAILURE() << name << ": did not decline";
    } catch (const gpu::Declined& reason) {
      EXPECT_NE(std::string(reason.what()).find("b=1, t=1, h=0"), std::string::npos) << reason.what();
    }
  }
}

// Gates of 1e-12: the product leaves float32's range after four steps, the segmented form starts again
// before.
TEST_F(RecurrenceKernels, TheSegmentedPrefixProductTakesTinyGates) {
  Problem problem({1, 16, 1, 3, 2}, Layout::contiguous, Gates::nonzero, true, 2);
  for (float& gate : problem.gate.values) gate = 6.5e-12F;
  problem.gate.upload(device());
  EXPECT_TRUE(run(kernel_named("prefix_product_segmented"), problem, simt::Schedule::in_order));
  gpu::LaunchContext context(device());
  EXPECT_THROW(kernel_named("prefix_product").run(problem.arguments(), context), gpu::Declined);
}

TEST_F(RecurrenceKernels, DeclineWithAReason) {
  Problem wide({1, 1, 1, 2000, 40}, Layout::contiguous, Gates::any, false, 1);
  int declined = 0;
  for (const gpu::RecurrenceKernel& kernel : gpu::simt_backend::recurrence_kernels()) {
    const auto reason = kernel.declines(wide.arguments());
    if (!reason) continue;
    ++declined;
    EXPECT_FALSE(reason->empty()) << kernel.name;
  }
  EXPECT_GE(declined, 5);
}

}  // namespace
