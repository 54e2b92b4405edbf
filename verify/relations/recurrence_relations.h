// Relations of the recurrence.
#pragma once

#include <vector>

#include "gaugeblock/verify/relations/relation.h"

namespace gaugeblock {

std::vector<Relation> recurrence_relations();

}  // namespace gaugeblock
