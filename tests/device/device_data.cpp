// What data/device keeps of GPU runs: the outputs are judged again with today's bounds, and what is no longer
// the same source is named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/golden/golden_cases.h"
#include "gaugeblock/verify/variants/last_seen.h"
#include "gaugeblock/verify/verdict/checked_run.h"
#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {
namespace {

const std::filesystem::path device_folder = GAUGEBLOCK_DEVICE_DATA;

struct StoredOutput {
  std::filesystem::path path;
  std::string golden_case;
  Operation operation;
  std::string variant;
};

std::vector<StoredOutput> stored_outputs() {
  std::vector<StoredOutput> outputs;
  for (const auto& entry : std::filesystem::directory_iterator(device_folder)) {
    if (!entry.is_directory()) continue;
    std::ifstream stream(entry.path() / "index.json");
    const nlohmann::json index = nlohmann::json::parse(stream);
    for (const auto& variant : index.at("variants"))
      for (const auto& [golden_case, hash] : variant.at("outputs").items())
        outputs.push_back(
            {entry.path() / golden_case / (variant.at("name").get<std::string>() + ".safetensors"),
             golden_case, parse_operation(variant.at("op").get<std::string>()), variant.at("name")});
  }
  return outputs;
}

/// The problems of the golden cases and what is true of them, each made once.
class Truths {
 public:
  struct Truth {
    Problem problem;
    std::unique_ptr<Oracle> oracle;
  };
  Truth& of(const std::string& id) {
    std::unique_ptr<Truth>& truth = truths_[id];
    if (truth) return *truth;
    for (const GoldenCase& golden : golden_cases())
      if (golden.id == id) {
        truth = std::make_unique<Truth>();
        truth->problem = make_problem(parse_case(golden.case_text));
        truth->oracle = make_oracle(truth->problem);
        return *truth;
      }
    throw std::invalid_argument("no golden case is called " + id);
  }

 private:
  std::map<std::string, std::unique_ptr<Truth>> truths_;
};

/// The variant that made the output, on the given backend; null where this build does not have it.
const Variant* variant_of(const StoredOutput& output, const std::string& backend) {
  for (const Variant& variant : all_variants())
    if (variant.backend == backend && variant.operation == output.operation && variant.name == output.variant)
      return &variant;
  return nullptr;
}

/// The variant's own arithmetic; where this build does not have the variant, that of any float32 form.
Arithmetic arithmetic_of(const StoredOutput& output) {
  const Variant* variant = variant_of(output, "cuda");
  return variant != nullptr ? variant->arithmetic : unknown_arithmetic(output.operation);
}

TEST(DeviceData, StoredOutputsPassTodaysBounds) {
  Truths truths;
  const std::vector<StoredOutput> outputs = stored_outputs();
  EXPECT_GE(outputs.size(), 12U);
  for (const StoredOutput& output : outputs) {
    Truths::Truth& truth = truths.of(output.golden_case);
    const Outputs actual = read_outputs(read_safetensors(output.path), truth.problem);
    const Verdict verdict = judge_outputs(truth.problem, *truth.oracle, actual, arithmetic_of(output));
    EXPECT_EQ(verdict.outcome, Outcome::pass)
        << output.path.string() << ": " << name(verdict.outcome) << " at " << verdict.worst.tensor
        << ", error/bound " << verdict.worst_ratio << ", error/likely " << verdict.worst_likely_ratio;
  }
}

// The check can fail: an element moved by more than twice its bound is found in every stored output.
TEST(DeviceData, AMovedElementIsFound) {
  Truths truths;
  for (const StoredOutput& output : stored_outputs()) {
    Truths::Truth& truth = truths.of(output.golden_case);
    Outputs actual = read_outputs(read_safetensors(output.path), truth.problem);
    const std::string tensor = output.operation == Operation::axial ? "y" : "final_state";
    const Arithmetic arithmetic = arithmetic_of(output);
    std::vector<float> values = actual.at(tensor).values();
    values.back() = static_cast<float>(truth.oracle->expected(tensor).back() +
                                       2 * truth.oracle->proved(tensor, arithmetic).back() + 1e-3);
    actual.at(tensor).assign(values);
    EXPECT_EQ(judge_outputs(truth.problem, *truth.oracle, actual, arithmetic).outcome, Outcome::fail)
        << output.path.string();
  }
}

TEST(DeviceData, TheInterpreterGivesTheSameBitsWhereItPromises) {
  Truths truths;
  int compared = 0;
  for (const StoredOutput& output : stored_outputs()) {
    const Variant* cuda = variant_of(output, "cuda");
    const Variant* simt = variant_of(output, "simt");
    if (cuda == nullptr || simt == nullptr || !cuda->promises.interpreted) continue;
    if (!last_seen(output.operation, output.variant)->current) continue;
    const Problem& problem = truths.of(output.golden_case).problem;
    Outputs interpreted = make_outputs(problem);
    simt->run(problem, interpreted);
    EXPECT_EQ(first_difference(read_outputs(read_safetensors(output.path), problem), interpreted), "")
        << output.path.string();
    ++compared;
  }
  if (compared == 0)
    GTEST_SKIP() << "every stored output is of a source that has changed since, or of a kernel that does not "
                    "promise it";
}

TEST(DeviceData, EveryKernelHasADigest) {
  for (const Variant& variant : all_variants()) {
    if (variant.backend == "cpu") continue;
    EXPECT_EQ(source_digest(variant.operation, variant.name).size(), 64U) << variant.name;
  }
}

// No failure: data/device is refreshed on a GPU, kernels are changed anywhere.
TEST(DeviceData, EveryVariantWasSeenAsItIs) {
  std::set<std::string> changed;
  for (const Variant& variant : all_variants()) {
    if (variant.backend == "cpu") continue;
    const std::optional<LastSeen> last = last_seen(variant.operation, variant.name);
    if (!last || !last->current) changed.insert((last ? "stale: " : "not seen on a GPU: ") + variant.name);
  }
  if (!changed.empty()) GTEST_SKIP() << fmt::format("{}", fmt::join(changed, "\n"));
}

}  // namespace
}  // namespace gaugeblock
