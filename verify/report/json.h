// The JSON of every command: stable keys, numbers as numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gaugeblock/verify/report/campaign.h"

namespace gaugeblock {

/// A double for JSON: what is not finite becomes the text "nan", "inf" or "-inf".
nlohmann::ordered_json number(double value);

/// A ratio of error to bound, for JSON: always a number; an infinite one becomes the largest double.
double ratio_number(double ratio);

nlohmann::ordered_json list_json(const std::vector<Variant>& variants);
nlohmann::ordered_json campaign_json(const CampaignReport& report);
nlohmann::ordered_json verdict_json(const Verdict& verdict);

}  // namespace gaugeblock
