#include "gaugeblock/verify/bounds/axial_forms_impl.h"
#include "gaugeblock/verify/bounds/monte_carlo.h"

namespace gaugeblock {

template void run_axial_form<MonteCarlo>(const std::string&, const AxialProblem&,
                                         const AxialOutputs<MonteCarlo>&);

}  // namespace gaugeblock
