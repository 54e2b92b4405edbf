// Prints the largest error/bound of every claim, as the rows of a table or as JSON: over generated problems
// (--campaign CASES) or on inputs built to be bad (the search, without it). Exit 1 when one exceeds 1.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "worst_ratios.h"

int main(int argc, char** argv) {
  using namespace gaugeblock;
  CLI::App program{"The largest error/bound of every claim.", "worst_ratio"};
  std::uint64_t seed = 1;
  std::uint64_t cases = 0;
  SearchEffort effort;
  bool json = false;
  program.add_option("--seed", seed, "seed (1)");
  program.add_option("--campaign", cases, "generated problems of each operation, instead of the search");
  program.add_option("--candidates", effort.candidates, "of the search, in place of each input (40)");
  program.add_option("--sweeps", effort.sweeps, "of the search, after a greedy one (3)");
  program.add_flag("--json", json, "JSON");
  CLI11_PARSE(program, argc, argv);

  const WorstRatios worst =
      cases > 0 ? campaign_worst_ratios(seed, cases) : search_worst_ratios(seed, effort);
  bool within = true;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const auto& [claim, found] : worst) {
    within = within && found.ratio <= 1;
    report.push_back({{"claim", claim}, {"worst_ratio", found.ratio}, {"where", found.where}});
    if (!json) fmt::print("{:<40} {:<8.3g} {}\n", claim, found.ratio, found.where);
  }
  if (json) fmt::print("{}\n", report.dump(2));
  return within ? 0 : 1;
}
