#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/report/json.h"

namespace gaugeblock {
namespace {

/// "last run on NVIDIA H200, driver 580.159.04, 2026-01-31: current", which means that the source is still
/// the same.
std::string last_seen_text(const nlohmann::ordered_json& last) {
  if (last.is_null()) return "no run on a GPU is on record";
  return fmt::format("last run on {}, driver {}, {}: {}", last["gpu"].get<std::string>(),
                     last["driver"].get<std::string>(), last["date"].get<std::string>(),
                     last["source"].get<std::string>());
}

int explain(std::optional<Operation> operation, bool as_json) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::string text;
  for (const Operation each : {Operation::recurrence, Operation::axial}) {
    if (operation && each != *operation) continue;
    nlohmann::ordered_json entry{{"op", std::string(name(each))}};
    text += fmt::format("{}{}: the first of these that takes the problem\n", text.empty() ? "" : "\n",
                        name(each));
    for (const auto& [variant, condition] : choice_rules(each)) {
      entry["rules"].push_back({{"variant", variant}, {"condition", condition}});
      text += fmt::format("  {:<28} {}\n", variant, condition);
    }
    for (const std::string& case_text : quoted_cases(each)) {
      const auto [variant, reason] = choose_variant(make_problem(parse_case(case_text)));
      const std::string chosen = variant == nullptr ? "none" : variant->name;
      entry["choices"].push_back({{"case", case_text}, {"variant", chosen}, {"reason", reason}});
      text += fmt::format("  {}\n    {}: {}\n", case_text, chosen, reason);
    }
    json.push_back(entry);
  }
  fmt::print("{}", as_json ? json.dump(2) + "\n" : text);
  return exit_pass;
}

}  // namespace

int run_list(const ListOptions& options) {
  const std::optional<Operation> operation =
      options.op.empty() ? std::nullopt : std::optional(parse_operation(options.op));
  if (options.explain) {
    if (options.backend != "all")
      throw InputError(
          fmt::format("--explain is about cuda: leave out --backend, found '{}'", options.backend));
    return explain(operation, options.json);
  }
  const std::vector<Variant> variants = select_variants(operation, "*", options.backend);
  const nlohmann::ordered_json json = list_json(variants);
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
    return exit_pass;
  }
  std::size_t width = 0;
  for (const auto& entry : json) width = std::max(width, entry["name"].get<std::string>().size());
  std::string op;
  for (const auto& entry : json) {
    if (entry["op"] != op) {
      op = entry["op"];
      fmt::print("{}{}\n", &entry == &json.front() ? "" : "\n", op);
    }
    std::string backends;
    for (const auto& backend : entry["backends"])
      backends += (backends.empty() ? "" : ",") + backend.get<std::string>();
    fmt::print("  {:<{}}  {:<9}  {}\n  {:<{}}             claim {} ({}), {}\n",
               entry["name"].get<std::string>(), width, backends, entry["summary"].get<std::string>(), "",
               width, entry["claim"].get<std::string>(), entry["claim_status"].get<std::string>(),
               entry["arithmetic"].get<std::string>());
    if (entry.contains("last_seen"))
      fmt::print("  {:<{}}             {}\n", "", width, last_seen_text(entry["last_seen"]));
  }
  return exit_pass;
}

}  // namespace gaugeblock
