#include "gaugeblock/verify/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace gaugeblock {

std::string campaign_table(const CampaignReport& report) {
  std::string text;
  const auto line = [&text](std::string_view format, const auto&... arguments) {
    fmt::vformat_to(std::back_inserter(text), format, fmt::make_format_args(arguments...));
    text += '\n';
  };
  std::size_t width = 7;
  for (const VariantSummary& variant : report.variants) width = std::max(width, variant.name.size());
  line("{:<{}} {:<7} {:>7} {:>7} {:>5} {:>7} {:>11} {:>5}  {:>12} {:>12} {:>9}", "variant", width, "backend",
       "pass", "suspect", "fail", "vacuous", "unsupported", "error", "error/proved", "error/likely",
       "vac. el.");
  for (const VariantSummary& variant : report.variants) {
    const auto of = [&variant](Outcome outcome) { return variant.count[static_cast<std::size_t>(outcome)]; };
    const double share =
        variant.elements == 0 ? 0 : 100 * double(variant.vacuous_elements) / double(variant.elements);
    line("{:<{}} {:<7} {:>7} {:>7} {:>5} {:>7} {:>11} {:>5}  {:>12.3g} {:>12.3g} {:>8.2g}%", variant.name,
         width, variant.backend, of(Outcome::pass), of(Outcome::suspect), of(Outcome::fail),
         of(Outcome::vacuous), of(Outcome::unsupported), of(Outcome::error), variant.worst_ratio,
         variant.worst_likely_ratio, share);
  }
  line("");
  if (report.stopped) line("Interrupted: what stands here is of the cases judged until then.");
  line("{} cases, seed {}. Families drawn:", report.cases, report.seed);
  for (const auto& [key, families] : report.families) {
    std::string counts;
    for (const auto& [family, count] : families)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", family, count);
    line("  {}: {}", key, counts);
  }
  line("");
  line("Largest error/proved of each variant, and the claim behind its bound (see {}):", claims_page);
  std::size_t claim_width = 0;
  for (const VariantSummary& variant : report.variants)
    claim_width = std::max(claim_width, variant.claim.size());
  for (const VariantSummary& variant : report.variants)
    if (!variant.worst_case.empty())
      line("  {:<{}}  {:<9.3g} {:<{}} ({})  {}", variant.name, width, variant.worst_ratio, variant.claim,
           claim_width, claim_status(variant.claim), variant.worst_case);
  for (const VariantSummary& variant : report.variants) {
    std::string chosen;
    for (const auto& [name, cases] : variant.chosen)
      chosen += fmt::format("{}{} in {} cases", chosen.empty() ? "" : ", ", name, cases);
    if (!chosen.empty()) line("  {} ({}) was {}", variant.name, name(variant.operation), chosen);
  }
  for (const Failure& failure : report.failures) {
    line("");
    line("{} ({}): {} by {}", failure.variant, failure.backend, name(failure.result.verdict.outcome),
         failure.result.verdict.reason);
    line("  {}", failure.result.message);
    line("  found in {}", failure.found_in);
    line("  repeat   {}", failure.command);
  }
  return text;
}

std::string verdict_text(const Verdict& verdict) {
  const Finding& at = verdict.worst;
  std::string text =
      fmt::format("{}: {} elements compared, {} vacuous; largest error/proved {:.3g}, error/likely {:.3g}\n",
                  name(verdict.outcome), verdict.compared, verdict.vacuous_elements, verdict.worst_ratio,
                  verdict.worst_likely_ratio);
  if (!verdict.unjudged.empty())
    text += fmt::format(
        "  no element of {} could be judged: no bound there is useful, or the true value is none of "
        "float32's\n",
        fmt::join(verdict.unjudged, ", "));
  if (!at.tensor.empty())
    text += fmt::format("  {}[{}] is {:.9g}, expected {:.17g}, bound {:.3g}, sigma {:.3g}\n", at.tensor,
                        fmt::join(at.index, ","), at.actual, at.expected, at.bound, at.sigma);
  if (!at.tensor.empty())
    text += at.claim.empty() ? "  bound from the input file, which names no claim\n"
                             : fmt::format("  bound from claim {} ({}), see {}\n", at.claim,
                                           claim_status(at.claim), claims_page);
  return text;
}

}  // namespace gaugeblock
