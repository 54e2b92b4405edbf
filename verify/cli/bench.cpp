// Times variants with Google Benchmark: on the host by its clock, on a GPU by events around a replayed graph.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/variants/device_run.h"
#include "gaugeblock/verify/variants/variant.h"
#ifdef GAUGEBLOCK_HAS_CUDA
#include "gaugeblock/gpu/runtime/cuda_timer.h"
#endif

namespace gaugeblock {
namespace {

// The sizes that people quote; a CPU is timed on the first of each operation only.
const std::map<Operation, std::vector<std::string>>& quoted_cases() {
  static const std::map<Operation, std::vector<std::string>> cases{
      {Operation::recurrence,
       {"recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one",
        "recurrence:B=2,T=2048,H=16,K=64,V=64,gate=near_one",
        "recurrence:B=4,T=4096,H=16,K=128,V=128,gate=near_one",
        "recurrence:B=1,T=65536,H=16,K=128,V=128,gate=near_one"}},
      {Operation::axial,
       {"axial:B=4,H=32,W=32,D=64,heads=4", "axial:B=8,H=128,W=128,D=128,heads=8",
        "axial:B=4,H=256,W=256,D=64,heads=4"}},
  };
  return cases;
}

constexpr int repetitions = 11;

/// One variant on one case.
struct Timed {
  const Variant* variant = nullptr;
  std::string case_text;
  double median_us = 0;
  std::size_t copies = 1;  ///< of the problem, used in turn, so that inputs do not wait in a cache
  bool replayed = false;   ///< from a graph, without the host
  std::string failure;     ///< why there is no time
};

#ifdef GAUGEBLOCK_HAS_CUDA
std::size_t bytes_of(const Problem& problem) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : problem.inputs) bytes += sizeof(float) * tensor.buffer.size();
  return bytes;
}

void time_on_gpu(Timed& timed, const Problem& problem, benchmark::State& state) {
  constexpr std::size_t past_the_cache_bytes = 256U << 20;  // several times the L2 of any GPU so far
  constexpr std::size_t most_copies = 512;
  timed.copies = std::clamp<std::size_t>(past_the_cache_bytes / std::max<std::size_t>(1, bytes_of(problem)),
                                         1, most_copies);
  std::vector<std::function<void(void*)>> launches;
  for (std::size_t copy = 0; copy < timed.copies; ++copy) launches.push_back(timed.variant->prepare(problem));
  const auto enqueue_all = [&launches](void* stream) {
    for (const auto& launch : launches) launch(stream);
  };
  enqueue_all(nullptr);  // the first launch of a kernel loads it
  cuda_device().synchronize();
  std::unique_ptr<gpu::CudaGraph> graph;
  try {
    graph = std::make_unique<gpu::CudaGraph>(enqueue_all);
  } catch (const gpu::DeviceError&) {
    // It allocates or waits: its launches are timed one by one, and the report says so.
  }
  timed.replayed = graph != nullptr;
  gpu::CudaStream stream;
  gpu::LaunchContext context(cuda_device());
  context.stream = stream.get();
  gpu::CudaTimer timer;
  const auto run_us = [&] {
    if (graph) return graph->replay_us();
    timer.start(context);
    enqueue_all(context.stream);
    return timer.stop_us(context);
  };
  run_us();
  for (auto _ : state) state.SetIterationTime(1e-6 * run_us() / static_cast<double>(timed.copies));
}
#endif

void time_on_host(const Timed& timed, const Problem& problem, benchmark::State& state) {
  Outputs outputs = make_outputs(problem);
  for (auto _ : state) {
    timed.variant->run(problem, outputs);
    benchmark::ClobberMemory();
  }
}

/// Keeps the medians.
class Medians : public benchmark::BenchmarkReporter {
 public:
  explicit Medians(std::map<std::string, Timed>& timed) : timed_(timed) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median")
        timed_.at(run.run_name.function_name).median_us = run.GetAdjustedRealTime();
  }

 private:
  std::map<std::string, Timed>& timed_;
};

}  // namespace

int run_bench(const BenchOptions& options) {
  if (options.backend != "cpu" && options.backend != "cuda")
    throw InputError(fmt::format("--backend: expected cpu or cuda, found '{}'", options.backend));
  std::optional<Operation> operation;
  if (!options.op.empty()) operation = parse_operation(options.op);
  const std::vector<Variant> variants = select_variants(operation, options.variant, options.backend);
  const bool on_gpu = options.backend == "cuda";
  if (on_gpu) cuda_device();

  std::vector<Case> cases;
  for (const std::string& text : options.given) cases.push_back(parse_case(text));
  if (cases.empty())
    for (const auto& [op, texts] : quoted_cases())
      for (const std::string& text : texts)
        if (on_gpu || &text == &texts.front()) cases.push_back(parse_case(text));

  std::vector<std::string> order;
  std::map<std::string, Timed> timed;
  for (const Case& c : cases) {
    const auto problem = std::make_shared<const Problem>(make_problem(c));
    benchmark::ClearRegisteredBenchmarks();
    std::map<std::string, Timed> of_case;
    for (const Variant& variant : variants) {
      if (variant.operation != problem->operation) continue;
      const std::string key = variant.name + " " + print_case(c);
      order.push_back(key);
      Timed& entry = of_case[key];
      entry.variant = &variant;
      entry.case_text = print_case(c);
      if (const auto reason = variant.declines(*problem)) {
        entry.failure = "declined: " + *reason;
        continue;
      }
      auto* registered =
          benchmark::RegisterBenchmark(key.c_str(), [&entry, problem, on_gpu](benchmark::State& state) {
            try {
#ifdef GAUGEBLOCK_HAS_CUDA
              if (on_gpu) return time_on_gpu(entry, *problem, state);
#endif
              time_on_host(entry, *problem, state);
            } catch (const std::exception& failure) {
              entry.failure = failure.what();
              state.SkipWithError(failure.what());
            }
          });
      registered->Unit(benchmark::kMicrosecond)
          ->MinTime(0.02)
          ->Repetitions(repetitions)
          ->ReportAggregatesOnly();
      if (on_gpu)
        registered->UseManualTime();
      else
        registered->UseRealTime();
    }
    const auto is_registered = [](const auto& one) { return one.second.failure.empty(); };
    Medians reporter(of_case);
    if (std::any_of(of_case.begin(), of_case.end(), is_registered)) benchmark::RunSpecifiedBenchmarks(&reporter);
    timed.merge(of_case);
  }

  std::map<std::string, double> fastest;  // by case
  for (const auto& [key, entry] : timed) {
    if (!entry.failure.empty()) continue;
    double& least = fastest.try_emplace(entry.case_text, entry.median_us).first->second;
    least = std::min(least, entry.median_us);
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
  bool failed = false;
  for (const std::string& key : order) {
    const Timed& entry = timed.at(key);
    nlohmann::ordered_json row{{"name", entry.variant->name},
                               {"op", std::string(name(entry.variant->operation))},
                               {"backend", entry.variant->backend},
                               {"case", entry.case_text}};
    if (entry.case_text != last_case)
      table += fmt::format("{}{}\n", last_case.empty() ? "" : "\n", entry.case_text);
    last_case = entry.case_text;
    if (entry.failure.empty()) {
      const double ratio = entry.median_us / fastest.at(entry.case_text);
      row["median_us"] = entry.median_us;
      row["ratio"] = ratio;
      row["copies"] = entry.copies;
      row["replayed"] = entry.replayed;
      table +=
          fmt::format("  {:<32} {:>12.2f} us {:>9.2f} x{}\n", entry.variant->name, entry.median_us, ratio,
                      on_gpu && !entry.replayed ? "  (with the host: it allocates or waits)" : "");
    } else {
      row["not_run"] = entry.failure;
      failed = failed || !entry.failure.starts_with("declined");
      table += fmt::format("  {:<32} not run: {}\n", entry.variant->name, entry.failure);
    }
    json["benchmarks"].push_back(row);
  }
  fmt::print("{}", options.json ? json.dump(2) + "\n" : table);
  return failed ? exit_device : exit_pass;
}

}  // namespace gaugeblock
