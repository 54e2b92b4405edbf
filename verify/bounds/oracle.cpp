#include "gaugeblock/verify/bounds/oracle.h"

#include <algorithm>

#include "gaugeblock/verify/bounds/axial_oracle.h"
#include "gaugeblock/verify/bounds/recurrence_oracle.h"

namespace gaugeblock {

std::string Oracle::claim(const std::string& output, const Arithmetic& arithmetic, Index element) {
  const std::vector<std::string> ids = claims_about(output, arithmetic);
  const double smallest = proved(output, arithmetic)[element];
  return *std::find_if(ids.begin(), ids.end() - 1, [&](const std::string& id) {
    return proved_by(id, output, arithmetic)[element] == smallest;
  });
}

std::unique_ptr<Oracle> make_oracle(const Problem& problem, Truth truth) {
  return problem.operation == Operation::recurrence ? make_recurrence_oracle(problem, truth)
                                                    : make_axial_oracle(problem, truth);
}

}  // namespace gaugeblock
