#include "gaugeblock/verify/bounds/axial_forms_impl.h"

namespace gaugeblock {

template void run_axial_form<float>(const std::string&, const AxialProblem&, const AxialOutputs<float>&);

}  // namespace gaugeblock
