// What every kernel costs on the interpreter, at fixed sizes: a table that changes only when a kernel or the
// interpreter does.
//
//     kernel_costs --write FILE      interprets and writes the table
//     kernel_costs --check FILE      interprets and compares; exit code 1 when anything differs
//     kernel_costs --launch-on-gpu   starts the same kernels in the same order on a GPU, for a profiler
//
// The figures belong to one launch each: requests (warp instructions), 32-byte sectors of global memory and
// wavefronts of shared memory summed over them, barriers completed, shuffles and votes completed.
#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/device_run.h"
#include "gaugeblock/verify/variants/gpu_variants.h"
#include "stored_table.h"

namespace {

using namespace gaugeblock;
using Json = nlohmann::ordered_json;

struct MeasuredCase {
  std::string text, why;
};

/// The axial block interprets slowly (4 B·H·W·D² multiply-adds a pass), so each pass is measured by itself on
/// two sequences of the quoted length: what a block costs does not depend on how many there are.
const std::vector<MeasuredCase>& measured_cases() {
  static const std::vector<MeasuredCase> cases{
      {"recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=uniform,state=writes", "the quoted size"},
      {"recurrence:B=1,T=16,H=2,K=64,V=64,gate=near_one,beta=uniform,state=writes",
       "rows are multiples of 128 bytes, and of two warps"},
      {"recurrence:B=1,T=17,H=3,K=7,V=10,gate=near_one,beta=uniform,state=writes",
       "rows that straddle sectors and suit no vector"},
      {"axial:B=1,H=2,W=32,D=64,heads=4,passes=row", "two rows of the quoted size"},
      {"axial:B=1,H=32,W=2,D=64,heads=4,passes=col", "two columns of the quoted size"},
      {"axial:B=1,H=2,W=9,D=24,heads=3,passes=row", "rows that straddle sectors, and less than a warp"},
  };
  return cases;
}

/// Runs `visit(variant, case text, launches)` for every kernel of a backend that takes the case; kernels that
/// the interpreter does not have are left out on a GPU too.
void for_each_run(const std::string& backend, gpu::Device& device,
                  const std::function<void(const Variant&, const std::string&,
                                           const std::vector<simt::LaunchRecord>&)>& visit) {
  std::map<std::pair<Operation, std::string>, bool> interpreted;
  for (const Variant& variant : all_variants())
    if (variant.backend == "simt") interpreted[{variant.operation, variant.name}] = true;
  for (const MeasuredCase& measured : measured_cases()) {
    const Problem problem = make_problem(parse_case(measured.text));
    for (const Variant& variant : all_variants()) {
      if (variant.backend != backend || variant.operation != problem.operation ||
          !interpreted.contains({variant.operation, variant.name}) || variant.declines(problem))
        continue;
      Outputs outputs = make_outputs(problem);
      std::vector<simt::LaunchRecord> launches;
      try {
        run_on_device(device, {}, problem, outputs,
                      [&](const DeviceTensors& tensors, gpu::LaunchContext& context) {
                        launch_of(variant)(tensors, context);
                        launches = context.launches;
                      });
      } catch (const NothingToJudge&) {
        continue;  // declined after a look at the values
      }
      visit(variant, measured.text, launches);
    }
  }
}

std::string key_of(simt::Space space, simt::Access access) {
  const std::string kind = access == simt::Access::load    ? "load"
                           : access == simt::Access::store ? "store"
                                                           : "atomic";
  return (space == simt::Space::shared ? "shared_" : "global_") + kind;
}

Json launch_json(const simt::LaunchRecord& launch) {
  Json json{{"kernel", launch.kernel},
            {"grid", launch.grid},
            {"block", launch.block},
            {"shared_bytes", launch.dynamic_shared_bytes + launch.static_shared_bytes},
            {"barriers", launch.cost.barriers},
            {"exchanges", launch.cost.exchanges}};
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sums;
  for (const simt::LineCost& line : launch.lines) {
    if (line.space == simt::Space::none) continue;
    auto& [requests, units] = sums[key_of(line.space, line.access)];
    requests += line.requests;
    units += line.units;
  }
  for (const auto& [key, sum] : sums) {
    const auto& [requests, units] = sum;
    json[key] = {
        {"requests", requests},
        {key.starts_with("shared_") ? "wavefronts" : "sectors", units},
        {"per_request", std::round(1e4 * static_cast<double>(units) / static_cast<double>(requests)) / 1e4}};
  }
  return json;
}

Json measure() {
  Json costs = Json::array();
  for_each_run(
      "simt", gpu::simt_device(),
      [&](const Variant& variant, const std::string& text, const std::vector<simt::LaunchRecord>& launches) {
        Json entry{{"op", std::string(name(variant.operation))}, {"variant", variant.name}, {"case", text}};
        for (const simt::LaunchRecord& launch : launches) entry["launches"].push_back(launch_json(launch));
        costs.push_back(entry);
      });
  return costs;
}

std::string table_text(const Json& costs) {
  Json cases = Json::array();
  for (const MeasuredCase& measured : measured_cases())
    cases.push_back({{"case", measured.text}, {"why", measured.why}});
  return fmt::format("{{\n\"format\": \"1\",\n\"cases\": {},\n\"costs\": {}\n}}\n", entries_text(cases),
                     entries_text(costs));
}

std::string name_of(const Json& entry) {
  return fmt::format("{} on {}", entry["variant"].get<std::string>(), entry["case"].get<std::string>());
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--launch-on-gpu") {
    for_each_run("cuda", cuda_device(),
                 [](const Variant& variant, const std::string& text, const std::vector<simt::LaunchRecord>&) {
                   fmt::print("{} on {}\n", variant.name, text);
                 });
    return 0;
  }
  if (arguments.size() != 2 || (arguments[0] != "--write" && arguments[0] != "--check")) {
    fmt::print(stderr, "usage: kernel_costs --write FILE | --check FILE | --launch-on-gpu\n");
    return 2;
  }
  return write_or_check({"kernel_costs", "costs", measure, table_text, name_of}, arguments[0], arguments[1]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_costs: {}\n", error.what());
    return 3;
  }
}
