// Judges a kernel of the user's own: here the reference form itself.
#include <gaugeblock/reference/recurrence/sequential.h>
#include <gaugeblock/verify/report/campaign.h>

#include <cstdio>

int main() {
  gaugeblock::Variant mine;
  mine.operation = gaugeblock::Operation::recurrence;
  mine.name = "mine";
  mine.backend = "cpu";
  mine.claim = "recurrence.any_form";
  mine.arithmetic = gaugeblock::unknown_arithmetic(mine.operation);
  mine.declines = [](const gaugeblock::Problem&) { return std::optional<std::string>(); };
  mine.run = [](const gaugeblock::Problem& problem, gaugeblock::Outputs& outputs) {
    gaugeblock::recurrence::sequential(gaugeblock::recurrence_view(problem),
                                       gaugeblock::recurrence_view(outputs));
  };
  gaugeblock::CampaignOptions options;
  options.operations = {mine.operation};
  options.cases = 20;
  const gaugeblock::CampaignReport report = gaugeblock::run_campaign({mine}, options);
  std::printf("%llu cases\n", static_cast<unsigned long long>(report.cases));
  return report.all_pass() ? 0 : 1;
}
