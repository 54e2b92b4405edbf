// What variants decline, counted: a variant that declines more, or less, than it should computes what it
// takes without a fault, so that no bound can see it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// For each of these variants of backends cpu and simt two entries at most: over cases of the campaign, and,
/// for a kernel, over sizes alone, up to some that no memory holds. An entry counts the problems that were
/// asked about and, by reason, the ones declined; numbers in a reason are replaced by '#'.
nlohmann::ordered_json declined_problems(const std::vector<const Variant*>& variants);

/// What distinguishes an entry from the others.
std::string name_of_declined(const nlohmann::ordered_json& entry);

}  // namespace gaugeblock
