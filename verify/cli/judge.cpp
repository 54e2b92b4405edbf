#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/bounds/likely.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/cli/progress.h"
#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/report/json.h"
#include "gaugeblock/verify/report/table.h"

namespace gaugeblock {
namespace {

/// Judges by the golden values of a file, whose bounds rest on `claim`: no oracle is needed.
Verdict judge_by_golden(const GoldenData& golden, const std::string& claim, const Outputs& outputs,
                        Limits limits) {
  Verdict verdict;
  for (const auto& [output, tensor] : outputs) {
    const GoldenValues& values = golden.at(output);
    std::vector<double> likely(values.sigma.size());
    for (std::size_t e = 0; e < likely.size(); ++e)
      likely[e] = limits == Limits::proved_only ? std::numeric_limits<double>::infinity()
                                                : likely_sigmas * values.sigma[e];
    verdict.merge(
        judge_tensor({output, tensor.shape, tensor.values(), values.expected, values.bound, likely}, limits));
  }
  if (verdict.compared > 0) verdict.worst.claim = claim;
  return verdict;
}

}  // namespace

int run_judge(const JudgeOptions& options) {
  const Limits limits = options.proved_only ? Limits::proved_only : Limits::proved_and_likely;
  const SafetensorsFile file = read_safetensors(options.input);
  const Problem problem = read_problem(file);
  const Outputs outputs = read_outputs(read_safetensors(options.actual), problem);
  const GoldenData golden = read_golden(file, problem);
  // With `row` the output y is judged as the column pass of that very row, whose truth no file can hold.
  bool is_golden = !outputs.contains("row");
  for (const auto& [output, tensor] : outputs) is_golden = is_golden && golden.contains(output);
  Verdict verdict;
  if (is_golden) {
    const std::string claim = golden_claim(file);
    if (!claim.empty() && !is_claim(claim))
      throw InputError(fmt::format("{}: metadata gaugeblock.claim: expected an id of {}; found {}", file.name,
                                   claims_page, quoted_text(claim)));
    verdict = judge_by_golden(golden, claim, outputs, limits);
  } else {
    if (isatty(STDERR_FILENO) != 0)
      say(fmt::format(
          "{} has no golden values for these outputs: computing them, which takes minutes for large problems",
          file.name));
    if (problem.operation == Operation::axial) {
      const std::vector<Index>& shape = problem.input("x").shape;
      require_score_memory(shape[1], shape[2], problem.attributes.passes);
    }
    const std::unique_ptr<Oracle> oracle = make_oracle(problem);
    verdict = judge_outputs(problem, *oracle, outputs, unknown_arithmetic(problem.operation), limits);
  }
  // A file is handed over to have all of it judged.
  if (verdict.outcome == Outcome::pass && !verdict.unjudged.empty()) {
    verdict.outcome = Outcome::vacuous;
    verdict.reason = fmt::format("no useful bound for any element of {}", fmt::join(verdict.unjudged, ", "));
  }
  if (options.json)
    fmt::print("{}\n", verdict_json(verdict).dump(2));
  else
    fmt::print("{}", verdict_text(verdict));
  switch (verdict.outcome) {
    case Outcome::pass:
      return exit_pass;
    case Outcome::vacuous:
      return exit_nothing;
    case Outcome::error:
      return exit_device;
    default:
      return exit_verdict;
  }
}

}  // namespace gaugeblock
