#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

}  // namespace

int run_list(const ListOptions& options) {
  const std::optional<Operation> operation =
      options.op.empty() ? std::nullopt : std::optional(parse_operation(options.op));
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
