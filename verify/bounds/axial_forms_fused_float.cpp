#include "gaugeblock/verify/bounds/axial_forms_impl.h"
#include "gaugeblock/verify/bounds/fused_float.h"

namespace gaugeblock {

template void run_axial_form<FusedFloat>(const std::string&, const AxialProblem&,
                                         const AxialOutputs<FusedFloat>&);

}  // namespace gaugeblock
