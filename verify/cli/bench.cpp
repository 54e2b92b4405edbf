// Times variants with Google Benchmark: on the host by its clock, on a GPU by events around a replayed graph.
// A variant whose result is wrong is not timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/accuracy.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/variants/device_run.h"
#include "gaugeblock/verify/variants/variant.h"
#ifdef GAUGEBLOCK_HAS_CUDA
#include "gaugeblock/gpu/runtime/cuda_timer.h"
#endif

namespace gaugeblock {

const std::vector<std::string>& quoted_cases(Operation operation) {
  static const std::vector<std::string> recurrence{"recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one",
                                                   "recurrence:B=2,T=2048,H=16,K=64,V=64,gate=near_one",
                                                   "recurrence:B=4,T=4096,H=16,K=128,V=128,gate=near_one",
                                                   "recurrence:B=1,T=65536,H=16,K=128,V=128,gate=near_one"};
  static const std::vector<std::string> axial{"axial:B=4,H=32,W=32,D=64,heads=4",
                                              "axial:B=8,H=128,W=128,D=128,heads=8",
                                              "axial:B=4,H=256,W=256,D=64,heads=4"};
  return operation == Operation::recurrence ? recurrence : axial;
}

namespace {

constexpr int repetitions = 11;

/// An error so many times that of the definition in float32, or u where it makes none, is none of rounding.
constexpr double wrong_from = 100;
constexpr double unit_roundoff = 0x1p-24;

/// One variant on one case.
struct Timed {
  const Variant* variant = nullptr;
  std::string case_text;
  double median_us = 0;
  double error = 0;          ///< of y: see Accuracy
  double float32_error = 0;  ///< of the definition in float32 on the same case
  std::size_t copies = 1;    ///< of the problem, used in turn, so that inputs do not wait in a cache
  bool replayed = false;     ///< from a graph, without the host
  std::string failure;       ///< why there is no time
  std::string chosen;        ///< "auto": which variant it was
};

#ifdef GAUGEBLOCK_HAS_CUDA
std::size_t bytes_of(const Problem& problem) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : problem.inputs) bytes += sizeof(float) * tensor.buffer.size();
  return bytes;
}

/// Copies of a problem on the GPU, run one after the other.
class OnGpu {
 public:
  OnGpu(const Variant& variant, const Problem& problem) {
    constexpr std::size_t past_the_cache_bytes = 256U << 20;  // several times the L2 of any GPU so far
    constexpr std::size_t most_copies = 512;
    const std::size_t copies = std::clamp<std::size_t>(
        past_the_cache_bytes / std::max<std::size_t>(1, bytes_of(problem)), 1, most_copies);
    for (std::size_t copy = 0; copy < copies; ++copy) launches_.push_back(variant.prepare(problem));
    enqueue(stream_.get());  // the first launch of a kernel loads it
    cuda_device().synchronize();
    try {
      graph_ = std::make_unique<gpu::CudaGraph>([this](void* stream) { enqueue(stream); });
    } catch (const gpu::DeviceError&) {
      // It allocates or waits: its launches are timed with the host between them, and the report says so.
    }
  }
  std::size_t copies() const { return launches_.size(); }
  bool is_replayed() const { return graph_ != nullptr; }
  /// Microseconds of one run of one copy.
  double run_us() {
    if (graph_) return graph_->replay_us() / static_cast<double>(copies());
    gpu::LaunchContext context(cuda_device());
    context.stream = stream_.get();
    timer_.start(context);
    enqueue(context.stream);
    return timer_.stop_us(context) / static_cast<double>(copies());
  }

 private:
  void enqueue(void* stream) const {
    for (const auto& launch : launches_) launch(stream);
  }
  std::vector<std::function<void(void*)>> launches_;
  gpu::CudaStream stream_;
  gpu::CudaTimer timer_;
  std::unique_ptr<gpu::CudaGraph> graph_;
};
#endif

/// Keeps the median of the repetitions of one benchmark.
class Median : public benchmark::BenchmarkReporter {
 public:
  double us = 0;
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median") us = run.GetAdjustedRealTime();
  }
};

double median_us(benchmark::internal::Benchmark* registered) {
  registered->Unit(benchmark::kMicrosecond)->Repetitions(repetitions)->ReportAggregatesOnly();
  Median median;
  benchmark::RunSpecifiedBenchmarks(&median);
  benchmark::ClearRegisteredBenchmarks();
  return median.us;
}

#ifdef GAUGEBLOCK_HAS_CUDA
void time_on_gpu(Timed& timed, const Problem& problem) {
  OnGpu placed(*timed.variant, problem);
  timed.copies = placed.copies();
  timed.replayed = placed.is_replayed();
  constexpr double repetition_us = 2e4;
  const double all_us = std::max(1.0, placed.run_us() * static_cast<double>(placed.copies()));
  auto* registered = benchmark::RegisterBenchmark("gpu", [&placed](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(1e-6 * placed.run_us());
  });
  registered->UseManualTime()->Iterations(
      std::max<benchmark::IterationCount>(1, static_cast<benchmark::IterationCount>(repetition_us / all_us)));
  timed.median_us = median_us(registered);
}
#endif

void time_on_host(Timed& timed, const Problem& problem) {
  Outputs outputs = make_outputs(problem);
  auto* registered = benchmark::RegisterBenchmark("host", [&](benchmark::State& state) {
    for (auto _ : state) {
      timed.variant->run(problem, outputs);
      benchmark::ClobberMemory();
    }
  });
  timed.median_us = median_us(registered->UseRealTime()->MinTime(0.02));
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (options.backend != "cpu" && options.backend != "cuda")
    throw InputError(fmt::format("--backend: expected cpu or cuda, found '{}'", options.backend));
  std::vector<Case> cases;
  for (const std::string& text : options.given) cases.push_back(parse_case(text));
  const std::vector<Variant> variants = select_for(cases, options.op, options.variant, options.backend);
  const bool on_gpu = options.backend == "cuda";
  if (on_gpu) cuda_device();

  if (cases.empty())
    for (const Operation each : {Operation::recurrence, Operation::axial}) {
      if (std::none_of(variants.begin(), variants.end(),
                       [each](const Variant& v) { return v.operation == each; }))
        continue;
      const std::vector<std::string>& texts = quoted_cases(each);
      // A CPU is timed on the first only.
      for (std::size_t i = 0; i < (on_gpu ? texts.size() : 1); ++i) cases.push_back(parse_case(texts[i]));
    }

  std::vector<Timed> all;
  std::map<std::string, double> fastest_us;  // by case
  for (const Case& c : cases) {
    const Problem problem = make_problem(c);
    const Accuracy accuracy(problem);
    for (const Variant& variant : variants) {
      if (variant.operation != problem.operation) continue;
      Timed timed;
      timed.variant = &variant;
      timed.case_text = print_case(c);
      if (variant.choose != nullptr)
        if (const Variant* chosen = variant.choose(problem).variant) timed.chosen = chosen->name;
      if (const auto reason = variant.declines(problem)) {
        timed.failure = "declined: " + *reason;
      } else {
        try {
          Outputs outputs = make_outputs(problem);
          variant.run(problem, outputs);
          timed.error = accuracy.error_of(outputs);
          timed.float32_error = accuracy.float32_error();
          if (!std::isfinite(timed.float32_error))
            throw NothingToJudge(
                "the definition itself leaves float32's range here, so there is no error to compare");
          if (!(timed.error <= wrong_from * std::max(timed.float32_error, unit_roundoff)))
            throw std::runtime_error(
                fmt::format("wrong: its relative error is {:.2g}, that of the definition in float32 {:.2g}",
                            timed.error, timed.float32_error));
#ifdef GAUGEBLOCK_HAS_CUDA
          if (on_gpu) time_on_gpu(timed, problem);
#endif
          if (!on_gpu) time_on_host(timed, problem);
          double& least = fastest_us.try_emplace(timed.case_text, timed.median_us).first->second;
          least = std::min(least, timed.median_us);
        } catch (const NothingToJudge& reason) {
          timed.failure = fmt::format("declined: {}", reason.what());
        } catch (const std::exception& failure) {
          timed.failure = failure.what();
        }
      }
      all.push_back(timed);
    }
  }

  nlohmann::ordered_json json;
  json["device"] = "host";
  if (on_gpu) {
    const gpu::DeviceFacts facts = cuda_device().facts();
    json["device"] = facts.name;
    json["driver"] = facts.driver;
    json["compiler"] = facts.compiler;
  }
  json["repetitions"] = repetitions;
  json["benchmarks"] = nlohmann::ordered_json::array();
  std::string table, last_case;
  bool failed = false, is_timed = false;
  for (const Timed& entry : all) {
    nlohmann::ordered_json row{{"name", entry.variant->name},
                               {"op", std::string(name(entry.variant->operation))},
                               {"backend", entry.variant->backend},
                               {"case", entry.case_text}};
    if (entry.case_text != last_case)
      table += fmt::format("{}{}\n", last_case.empty() ? "" : "\n", entry.case_text);
    last_case = entry.case_text;
    if (!entry.chosen.empty()) row["chosen"] = entry.chosen;
    const std::string shown =
        entry.chosen.empty() ? entry.variant->name : entry.variant->name + ": " + entry.chosen;
    if (entry.failure.empty()) {
      is_timed = true;
      const double ratio = entry.median_us / fastest_us.at(entry.case_text);
      row["median_us"] = entry.median_us;
      row["ratio"] = ratio;
      row["error"] = entry.error;
      row["float32_error"] = entry.float32_error;
      row["copies"] = entry.copies;
      row["replayed"] = entry.replayed;
      table += fmt::format("  {:<32} {:>12.2f} us {:>9.2f} x   error {:.1e}{}\n", shown, entry.median_us,
                           ratio, entry.error,
                           on_gpu && !entry.replayed ? "  (with the host: it allocates or waits)" : "");
    } else {
      row["not_run"] = entry.failure;
      failed = failed || !entry.failure.starts_with("declined");
      table += fmt::format("  {:<32} not run: {}\n", shown, entry.failure);
    }
    json["benchmarks"].push_back(row);
  }
  fmt::print("{}", options.json ? json.dump(2) + "\n" : table);
  if (failed) return exit_device;
  return is_timed ? exit_pass : exit_nothing;
}

}  // namespace gaugeblock
