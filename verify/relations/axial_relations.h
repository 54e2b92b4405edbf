// Relations of the axial block.
#pragma once

#include <vector>

#include "gaugeblock/verify/relations/relation.h"

namespace gaugeblock {

std::vector<Relation> axial_relations();

}  // namespace gaugeblock
