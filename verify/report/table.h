// Reports for people.
#pragma once

#include <string>

#include "gaugeblock/verify/report/campaign.h"

namespace gaugeblock {

/// The campaign as text: a row per variant, the families drawn, and each failure with the command that
/// repeats it.
std::string campaign_table(const CampaignReport& report);

/// A verdict in one or two lines.
std::string verdict_text(const Verdict& verdict);

}  // namespace gaugeblock
