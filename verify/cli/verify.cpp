#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/cli/progress.h"
#include "gaugeblock/verify/report/isolated.h"
#include "gaugeblock/verify/report/json.h"
#include "gaugeblock/verify/report/table.h"
#include "gaugeblock/verify/variants/gpu_variants.h"

namespace gaugeblock {
namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw InputError(fmt::format("cannot write the report to '{}'", path.string()));
}

volatile std::sig_atomic_t asked_to_stop = 0;

/// The first SIGINT or SIGTERM ends the campaign with what it has judged; the second one ends the program.
void stop_when_asked() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_stop = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

std::vector<Variant> select_for(const std::vector<Case>& given, const std::string& op,
                                const std::string& variant, const std::string& backend) {
  std::optional<Operation> operation;
  if (!op.empty()) operation = parse_operation(op);
  for (const Case& c : given)
    if (operation && operation_of(c) != *operation)
      throw InputError(fmt::format("--op is {}, but the case is one of {}: '{}'", name(*operation),
                                   name(operation_of(c)), print_case(c)));
  std::vector<Variant> variants;
  for (const Operation each : {Operation::recurrence, Operation::axial}) {
    if (std::none_of(given.begin(), given.end(), [each](const Case& c) { return operation_of(c) == each; }))
      continue;
    const std::vector<Variant> of_operation = select_variants(each, variant, backend);
    variants.insert(variants.end(), of_operation.begin(), of_operation.end());
  }
  return given.empty() ? select_variants(operation, variant, backend) : variants;
}

int run_verify(const VerifyOptions& options) {
  if (options.cases && options.seconds)
    throw InputError("--cases and --time exclude each other: give one of them");
  if (!options.given.empty() && (options.cases || options.seconds || options.seed))
    throw InputError("--case gives the cases themselves: leave out --cases, --time and --seed");
  if (options.seconds && !(*options.seconds > 0))
    throw InputError(fmt::format("--time must be above 0 seconds, found {}", *options.seconds));
  CampaignOptions campaign;
  campaign.jobs = options.jobs;
  for (const std::string& text : options.given) campaign.given.push_back(parse_case(text));
  std::vector<Variant> variants = select_for(campaign.given, options.op, options.variant, options.backend);
  if (options.repeats > 1)
    for (Variant& variant : variants) {
      // What differs from time to time is the run, where launches overlap; under the other conditions once does.
      if (variant.run_again.empty()) variant.run_again = {{variant.run}};
      variant.run_again.insert(variant.run_again.end(), options.repeats - 1, {variant.run});
    }
  if (!campaign.given.empty())
    for (Variant& variant : variants)
      if (variant.backend == "cuda" && variant.choose == nullptr)
        variant.run_again.push_back(run_apart(variant));
  const auto has = [&variants](const char* backend) {
    return std::any_of(variants.begin(), variants.end(),
                       [backend](const Variant& v) { return v.backend == backend; });
  };
  if (has("cuda")) {
    if (const std::optional<std::string> reason = cuda_refusal()) {
      if (options.backend != "all") throw DeviceFailure(*reason);
      say(fmt::format("not run: {}", *reason));
      std::erase_if(variants, [](const Variant& v) { return v.backend == "cuda"; });
    }
  }
  campaign.isolated = has("cuda");
  if (has("simt")) campaign.largest_work = largest_interpreted_work;
  for (const Operation each : {Operation::recurrence, Operation::axial})
    if (std::any_of(variants.begin(), variants.end(),
                    [each](const Variant& v) { return v.operation == each; }))
      campaign.operations.push_back(each);
  // A GPU can be asked for sizes that nothing else here is fast enough for. Not by time: to find the true values
  // of one takes minutes, so that the campaign would end long after its time.
  if (options.backend == "cuda" && !options.seconds)
    for (const Operation each : campaign.operations)
      for (const Case& c : large_cases(each)) campaign.large.push_back(c);
  if (options.seed) campaign.seed = *options.seed;
  if (options.cases) campaign.cases = *options.cases;
  campaign.seconds = options.seconds;
  campaign.progress = progress_line("cases");
  stop_when_asked();
  if (!options.report_folder.empty()) {  // before the campaign, whose result would else be lost
    std::error_code failure;
    std::filesystem::create_directories(options.report_folder, failure);
    if (failure)
      throw InputError(
          fmt::format("cannot make the report folder '{}': {}", options.report_folder, failure.message()));
  }
  campaign.stop = [] { return asked_to_stop != 0; };
  const CampaignReport report = run_campaign(variants, campaign);

  const std::string json = campaign_json(report).dump(2) + "\n";
  const std::string table = campaign_table(report);
  // Neither a folder that takes no report nor a full stdout costs what the other holds.
  std::string unwritten;
  if (!options.report_folder.empty()) {
    try {
      write_text(std::filesystem::path(options.report_folder) / "report.json", json);
      write_text(std::filesystem::path(options.report_folder) / "report.txt", table);
    } catch (const InputError& failure) {
      unwritten = failure.what();
    }
  }
  fmt::print("{}", options.json ? json : table);
  const std::array<std::uint64_t, 6> count = report.count();
  const auto of = [&count](Outcome outcome) { return count[static_cast<std::size_t>(outcome)]; };
  if (of(Outcome::fail) + of(Outcome::suspect) > 0) {
    if (!unwritten.empty()) say("gaugeblock: " + unwritten);
    return exit_verdict;
  }
  if (!unwritten.empty()) throw InputError(unwritten);
  if (of(Outcome::error) > 0) return exit_device;
  if (report.stopped)
    throw DeviceFailure(fmt::format("interrupted after {} cases: the report is of these", report.cases));
  if (of(Outcome::pass) == 0)
    throw NothingToJudge(fmt::format("nothing was judged: {} vacuous, {} unsupported", of(Outcome::vacuous),
                                     of(Outcome::unsupported)));
  return exit_pass;
}

}  // namespace gaugeblock
