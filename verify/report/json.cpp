#include "gaugeblock/verify/report/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "gaugeblock/verify/variants/last_seen.h"

namespace gaugeblock {
namespace {

using Json = nlohmann::ordered_json;

void add_counts(Json& json, const std::array<std::uint64_t, 6>& count) {
  for (const Outcome outcome : {Outcome::pass, Outcome::suspect, Outcome::fail, Outcome::vacuous,
                                Outcome::unsupported, Outcome::error})
    json[std::string(name(outcome))] = count[static_cast<std::size_t>(outcome)];
}

void add_last_seen(Json& json, const Variant& variant) {
  json["source_digest"] = source_digest(variant.operation, variant.name);
  json["compiler"] = cuda_compiler();
  json["last_seen"] = nullptr;
  if (const std::optional<LastSeen> last = last_seen(variant.operation, variant.name))
    json["last_seen"] = {{"gpu", last->gpu},
                         {"driver", last->driver},
                         {"date", last->date},
                         {"source", last->current ? "current" : "stale"}};
}

}  // namespace

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double ratio_number(double ratio) {
  return std::isfinite(ratio) ? ratio : std::numeric_limits<double>::max();
}

Json list_json(const std::vector<Variant>& variants) {
  Json list = Json::array();
  for (const Variant& variant : variants) {
    auto entry = std::find_if(list.begin(), list.end(), [&variant](const Json& other) {
      return other["name"] == variant.name && other["op"] == std::string(name(variant.operation));
    });
    if (entry == list.end()) {
      list.push_back({{"name", variant.name},
                      {"op", std::string(name(variant.operation))},
                      {"backends", Json::array()},
                      {"summary", variant.summary},
                      {"claim", variant.claim},
                      {"claim_status", claim_status(variant.claim)},
                      {"arithmetic", arithmetic_text(variant.arithmetic)}});
      entry = list.end() - 1;
    }
    (*entry)["backends"].push_back(variant.backend);
    if (variant.backend == "cuda") add_last_seen(*entry, variant);
  }
  return list;
}

Json campaign_json(const CampaignReport& report) {
  Json json;
  json["summary"]["cases"] = report.cases;
  add_counts(json["summary"], report.count());
  json["summary"]["seed"] = report.seed;
  if (report.stopped) json["summary"]["interrupted"] = true;
  json["variants"] = Json::array();
  for (const VariantSummary& variant : report.variants) {
    Json entry;
    entry["name"] = variant.name;
    entry["op"] = std::string(name(variant.operation));
    entry["backend"] = variant.backend;
    entry["claim"] = variant.claim;
    entry["claim_status"] = variant.claim.empty() ? "" : claim_status(variant.claim);
    if (!variant.chosen.empty()) entry["chosen"] = variant.chosen;
    entry["cases"] = variant.supported() + variant.count[static_cast<std::size_t>(Outcome::unsupported)];
    add_counts(entry, variant.count);
    entry["worst_ratio"] = ratio_number(variant.worst_ratio);
    entry["worst_likely_ratio"] = ratio_number(variant.worst_likely_ratio);
    entry["worst_case"] = variant.worst_case;
    entry["worst_likely_case"] = variant.worst_likely_case;
    entry["elements"] = variant.elements;
    entry["vacuous_elements"] = variant.vacuous_elements;
    if (variant.backend == "cuda") entry["source_digest"] = source_digest(variant.operation, variant.name);
    json["variants"].push_back(entry);
  }
  json["failures"] = Json::array();
  for (const Failure& failure : report.failures)
    json["failures"].push_back({{"name", failure.variant},
                                {"op", std::string(name(failure.operation))},
                                {"backend", failure.backend},
                                {"outcome", std::string(name(failure.result.verdict.outcome))},
                                {"reason", failure.result.verdict.reason},
                                {"message", failure.result.message},
                                {"found_in", failure.found_in},
                                {"simplest", failure.simplest},
                                {"command", failure.command}});
  json["families"] = report.families;
  return json;
}

Json verdict_json(const Verdict& verdict) {
  return {{"outcome", std::string(name(verdict.outcome))},
          {"reason", verdict.reason},
          {"worst_ratio", ratio_number(verdict.worst_ratio)},
          {"worst_likely_ratio", ratio_number(verdict.worst_likely_ratio)},
          {"tensor", verdict.worst.tensor},
          {"index", verdict.worst.index},
          {"actual", number(verdict.worst.actual)},
          {"expected", number(verdict.worst.expected)},
          {"bound", number(verdict.worst.bound)},
          {"claim", verdict.worst.claim},
          {"claim_status", verdict.worst.claim.empty() ? "" : claim_status(verdict.worst.claim)},
          {"sigma", number(verdict.worst.sigma)},
          {"compared", verdict.compared},
          {"vacuous_elements", verdict.vacuous_elements},
          {"unjudged", verdict.unjudged}};
}

}  // namespace gaugeblock
