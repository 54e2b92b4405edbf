// Times the axial kernels that run on a workspace: one call as a replay of a captured graph, 20 calls of it
// in a row (2 where a call takes long), parameters packed before; the median of 31 replays. The error is
// checked first: relative Frobenius norm against the definition in float64, beside that of the definition in
// float32.
//
//     ninja axial_speed && tests/bench/axial_speed
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gaugeblock/gpu/runtime/cuda_timer.h"
#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/variants/device_run.h"
#include "gaugeblock/verify/variants/variant.h"

namespace {

using namespace gaugeblock;

template <class Scalar>
std::vector<Scalar> definition(const Problem& problem) {
  const AxialProblem view = axial_view(problem);
  const auto& shape = view.x.shape;
  std::vector<Scalar> y(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  axial::unfused<Scalar>(view, {contiguous_view<Scalar, 4>(y.data(), shape), std::nullopt});
  return y;
}

template <class Values>
double error(const Values& actual, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (std::size_t e = 0; e < expected.size(); ++e) {
    difference += (double(actual[e]) - expected[e]) * (double(actual[e]) - expected[e]);
    size += expected[e] * expected[e];
  }
  return std::sqrt(difference / size);
}

double median_us(const Variant& variant, const Problem& problem, int calls) {
  const auto launch = variant.prepare(problem);
  launch(nullptr);  // the first launch of a kernel loads it
  cuda_device().synchronize();
  gpu::CudaGraph graph([&](void* stream) {
    for (int call = 0; call < calls; ++call) launch(stream);
  });
  std::vector<double> times;
  for (int replay = 0; replay < 34; ++replay) times.push_back(graph.replay_us() / calls);
  times.erase(times.begin(), times.begin() + 3);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  const struct {
    std::string text;
    int calls;
  } timed[] = {{"axial:B=4,H=32,W=32,D=64,heads=4", 20},
               {"axial:B=8,H=128,W=128,D=128,heads=8", 2},
               {"axial:B=4,H=256,W=256,D=64,heads=4", 2}};
  bool wrong = false;
  for (const auto& [text, calls] : timed) {
    const Problem problem = make_problem(parse_case(text));
    const std::vector<double> expected = definition<double>(problem);
    const double plain = error(definition<float>(problem), expected);
    fmt::print("{}: float32 definition {:.3g}\n", text, plain);
    for (const Variant& variant : select_variants(Operation::axial, "*_split_half", "cuda")) {
      if (variant.declines(problem)) continue;
      Outputs outputs = make_outputs(problem);
      variant.run(problem, outputs);
      const double actual = error(outputs.at("y").values(), expected);
      const bool right = actual <= 1.5 * plain;  // false for NaN
      wrong = wrong || !right;
      fmt::print("  {:<26} error {:.3g} ({:.2f} of float32's)", variant.name, actual, actual / plain);
      if (right)
        fmt::print("  {:.2f} us\n", median_us(variant, problem, calls));
      else
        fmt::print("  WRONG, not timed\n");
    }
  }
  return wrong ? 1 : 0;
}
