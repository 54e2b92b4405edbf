// A problem's tensors on a device, each by itself or all in one block: the same results, and the same damage seen;
// and runs there whose launches are not waited for.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/gpu_variants.h"

namespace gaugeblock {
namespace {

Outputs outputs_of(const Problem& problem, const KernelLaunch& launch, Placement placement) {
  Outputs outputs = make_outputs(problem);
  run_on_device(gpu::simt_device(), {}, problem, outputs, launch, placement);
  return outputs;
}

template <class Values>
std::vector<std::uint32_t> bits_of(const Values& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(DeviceTensors, KernelsGiveTheSameBitsWhereverTheTensorsLie) {
  for (const auto& [operation, name] :
       {std::pair{Operation::recurrence, "thread_per_column"}, std::pair{Operation::axial, "tiled"}}) {
    const std::vector<Variant> variants = select_variants(operation, name, "simt");
    ASSERT_EQ(variants.size(), 1U);
    for (std::uint64_t index = 0; index < 40; ++index) {
      const Case c = campaign_case(operation, 3, index, 3000);
      const Problem problem = make_problem(c);
      if (variants.front().declines(problem)) continue;
      const KernelLaunch launch = launch_of(variants.front());
      const Outputs apart = outputs_of(problem, launch, Placement::apart);
      const Outputs together = outputs_of(problem, launch, Placement::together);
      for (const auto& [output, tensor] : apart)  // whole buffers: between the elements of a view, too
        EXPECT_EQ(bits_of(together.at(output).buffer), bits_of(tensor.buffer))
            << print_case(c) << " " << output;
    }
  }
}

// Sizes of the problem below.
constexpr Index q_count = 2 * 5 * 3 * 4;
constexpr Index y_count = 2 * 5 * 3 * 6;

struct Placed {
  float *beta, *q, *y;
};

/// What a run says whose kernel does this to tensors that lie together.
std::string complaint(const std::function<void(const Placed&)>& damage) {
  const Problem problem = make_problem(parse_case("recurrence:B=2,T=5,H=3,K=4,V=6,layout=contiguous"));
  const KernelLaunch launch = [&](const DeviceTensors& tensors, gpu::LaunchContext&) {
    const auto writable = [](const float* data) { return const_cast<float*>(data); };
    damage({writable(tensors.input<3>("beta").data), writable(tensors.input<4>("q").data),
            tensors.output<4>("y").data});
  };
  try {
    outputs_of(problem, launch, Placement::together);
  } catch (const RunPropertyBroken& broken) {
    return broken.what();
  }
  return "";
}

TEST(DeviceTensors, DamageIsSeenWhereTheTensorsLieTogether) {
  EXPECT_EQ(complaint([](const Placed&) {}), "");
  EXPECT_EQ(complaint([](const Placed& at) { at.y[y_count - 1] = 1; }), "");
  const auto overwritten = [](const std::string& name, Index element, Index count) {
    return name + ": the guard band of '" + name + "' was overwritten at element " + std::to_string(element) +
           " of " + std::to_string(count);
  };
  for (const Index behind : {0, 1, 255})
    EXPECT_EQ(complaint([&](const Placed& at) { at.q[q_count + behind] = 1; }),
              overwritten("q", q_count + behind, q_count));
  // The first and the last in the block.
  EXPECT_EQ(complaint([](const Placed& at) { at.beta[-1] = 1; }).rfind("tensors: the guard band", 0), 0U);
  EXPECT_EQ(complaint([](const Placed& at) { at.y[y_count] = 1; }), overwritten("y", y_count, y_count));
  EXPECT_EQ(complaint([](const Placed& at) { at.q[7] = 100; }),
            "the input q was changed on the device, 7 elements behind its start");
}

TEST(DeviceTensors, KeepTheirAlignmentTogether) {
  for (const char* text : {"recurrence:B=2,T=5,H=3,K=4,V=6,layout=padded,seed=7",
                           "recurrence:B=1,T=3,H=1,K=5,V=3,layout=permuted,seed=8"}) {
    const Problem problem = make_problem(parse_case(text));
    const Outputs outputs = make_outputs(problem);
    const DeviceTensors tensors(gpu::simt_device(), problem, outputs, Placement::together);
    const auto same_alignment = [](const float* device, const Tensor& host) {
      return reinterpret_cast<std::uintptr_t>(device) / 4 % 64 ==
             static_cast<std::uintptr_t>(host.offset) % 64;
    };
    EXPECT_TRUE(same_alignment(tensors.input<4>("q").data, problem.input("q"))) << text;
    EXPECT_TRUE(same_alignment(tensors.input<3>("gate").data, problem.input("gate"))) << text;
    EXPECT_TRUE(same_alignment(tensors.output<4>("y").data, outputs.at("y"))) << text;
  }
}

/// A device whose failures show when all work is waited for.
class FailsAtTheEnd final : public gpu::Device {
 public:
  const char* backend() const override { return simt_.backend(); }
  gpu::DeviceFacts facts() const override { return simt_.facts(); }
  void* allocate(const std::string& name, std::size_t bytes, std::size_t payload_offset,
                 std::size_t payload_bytes) override {
    return simt_.allocate(name, bytes, payload_offset, payload_bytes);
  }
  void release(void* memory) noexcept override { simt_.release(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override { simt_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { simt_.download(to, from, bytes); }
  void fill(void* to, std::uint32_t word, std::size_t words) override { simt_.fill(to, word, words); }
  void synchronize() override { throw gpu::DeviceError("it failed"); }

 private:
  gpu::Device& simt_ = gpu::simt_device();
};

TEST(RunOnDevice, AFailureThatShowsAtTheEndIsNotLost) {
  const Problem problem = make_problem(parse_case("recurrence:T=2"));
  FailsAtTheEnd device;
  for (const bool wait : {true, false}) {
    Outputs outputs = make_outputs(problem);
    std::string message;
    try {
      run_on_device(
          device, {}, problem, outputs,
          [wait](const DeviceTensors&, gpu::LaunchContext& context) { EXPECT_EQ(context.wait, wait); },
          Placement::together, wait);
    } catch (const gpu::DeviceError& failure) {
      message = failure.what();
    }
    EXPECT_EQ(message,
              wait ? "it failed"
                   : "it failed (launches were not waited for one by one: any of them may have failed)");
  }
}

TEST(GpuVariants, AreRunAgainUnderOtherConditions) {
  for (const Variant& variant : all_variants())
    EXPECT_EQ(variant.run_again.size(), variant.backend == "cuda"   ? 1U
                                        : variant.backend == "simt" ? 2U
                                                                    : 0U)
        << variant.backend << " " << variant.name;
}

}  // namespace
}  // namespace gaugeblock
