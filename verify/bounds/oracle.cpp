#include "gaugeblock/verify/bounds/oracle.h"

#include "gaugeblock/verify/bounds/axial_oracle.h"
#include "gaugeblock/verify/bounds/recurrence_oracle.h"

namespace gaugeblock {

std::unique_ptr<Oracle> make_oracle(const Problem& problem, Truth truth) {
  return problem.operation == Operation::recurrence ? make_recurrence_oracle(problem, truth)
                                                    : make_axial_oracle(problem, truth);
}

}  // namespace gaugeblock
