#include <fmt/format.h>

#include <filesystem>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/cli/progress.h"
#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/variants/last_seen.h"
#include "gaugeblock/verify/variants/variant.h"
#include "gaugeblock/verify/verdict/checked_run.h"

namespace gaugeblock {

int run_run(const RunOptions& options) {
  const SafetensorsFile file = read_safetensors(options.input);
  std::error_code nowhere;  // there is no output yet
  if (std::filesystem::equivalent(options.input, options.output, nowhere))
    throw InputError(fmt::format(
        "--output: expected another file than --input, which would be lost; found '{}'", options.output));
  const Problem problem = read_problem(file);
  // A kernel needs no room for scores, the reference's forms do.
  if (options.backend == "cpu" && problem.operation == Operation::axial) {
    const std::vector<Index>& shape = problem.input("x").shape;
    require_score_memory(shape[1], shape[2], problem.attributes.passes);
  }
  const std::vector<Variant> variants = select_variants(problem.operation, options.variant, options.backend);
  if (variants.size() > 1)
    throw InputError(fmt::format("--variant '{}' names {} variants of {} on '{}': name one", options.variant,
                                 variants.size(), name(problem.operation), options.backend));
  const Variant& variant = variants.front();
  if (const std::optional<std::string> reason = variant.declines(problem))
    throw NothingToJudge(fmt::format("{} declines the problem: {}", variant.name, *reason));
  const Variant* computed = &variant;
  if (variant.choose != nullptr) {
    const ChosenVariant chosen = variant.choose(problem);
    computed = chosen.variant;
    say(fmt::format("auto: {}: {}", computed->name, chosen.reason));
  }
  const CheckedRun run = run_checked(*computed, problem);
  if (!run.declined.empty())
    throw NothingToJudge(fmt::format("{} declines the problem: {}", variant.name, run.declined));
  if (!run.error.empty()) throw DeviceFailure(fmt::format("{} failed: {}", variant.name, run.error));
  if (!run.broken.empty())
    throw DeviceFailure(fmt::format("{} broke a run property: {}", variant.name, run.broken));
  SafetensorsFile result;
  result.metadata = problem_file(problem).metadata;
  result.metadata["gaugeblock.claim"] = computed->claim;
  result.metadata["gaugeblock.variant"] = computed->name;
  result.metadata["gaugeblock.backend"] = computed->backend;
  if (computed->backend != "cpu")
    result.metadata["gaugeblock.source_digest"] = source_digest(computed->operation, computed->name);
  if (computed->backend == "cuda") result.metadata["gaugeblock.compiler"] = cuda_compiler();
  add_outputs(result, run.outputs);
  write_safetensors(result, options.output);
  return exit_pass;
}

}  // namespace gaugeblock
