// Runs the default campaign on some variants until one of them does not pass, and prints what became of it as
// JSON. Usage: mutation_runner OPERATION BACKEND CASES NAME…
//
// Linked anew for every automatic mutant, with the mutated object in front of the libraries.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "declined.h"
#include "gaugeblock/verify/report/campaign.h"
#include "stored_table.h"

namespace {

using namespace gaugeblock;

/// A variant that declines more, or less, than it should passes all that it computes.
bool declines_as_stored(const std::vector<const Variant*>& variants) {
  nlohmann::ordered_json stored;
  for (const nlohmann::ordered_json& entry : stored_entries(DECLINED_TABLE, "variants"))
    stored[name_of_declined(entry)] = entry;
  for (const nlohmann::ordered_json& entry : declined_problems(variants))
    if (stored.value(name_of_declined(entry), nlohmann::ordered_json()) != entry) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "expected OPERATION BACKEND CASES NAME...; found %d arguments\n", argc - 1);
    return 2;
  }
  const Operation operation = parse_operation(argv[1]);
  const std::string backend = argv[2];
  const std::uint64_t cases = std::strtoull(argv[3], nullptr, 10);
  std::vector<const Variant*> variants;
  for (int i = 4; i < argc; ++i)
    for (const Variant& variant : all_variants())
      if (variant.operation == operation && variant.backend == backend && variant.name == argv[i])
        variants.push_back(&variant);
  if (variants.empty()) {
    std::fprintf(stderr, "no variant of %s on %s has one of these names\n", argv[1], argv[2]);
    return 2;
  }
  nlohmann::ordered_json json;
  json["killed"] = false;
  for (std::uint64_t index = 0; index < cases && !json["killed"]; ++index) {
    const Case c = campaign_case(operation, 1, index,
                                 backend == "simt" ? largest_interpreted_work : largest_campaign_work);
    const std::vector<CaseVerdict> results = check_case(variants, c, RelationEffort::some);
    for (std::size_t v = 0; v < results.size(); ++v) {
      const Verdict& verdict = results[v].verdict;
      if (verdict.outcome != Outcome::fail && verdict.outcome != Outcome::suspect &&
          verdict.outcome != Outcome::error)
        continue;
      json = {{"killed", true},     {"variant", variants[v]->name}, {"reason", verdict.reason},
              {"cases", index + 1}, {"case", print_case(c)},        {"message", results[v].message}};
      break;
    }
  }
  if (!json["killed"] && !declines_as_stored(variants)) {
    json["killed"] = true;
    json["reason"] = "declines other problems than the table says";
    json["cases"] = cases;
  }
  std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}
