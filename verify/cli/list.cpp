#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/report/json.h"

namespace gaugeblock {

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
  }
  return exit_pass;
}

}  // namespace gaugeblock
