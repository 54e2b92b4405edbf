#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/bounds/recurrence_forms_impl.h"

namespace gaugeblock {

template void run_recurrence_form<FusedFloat>(const Arithmetic&, const RecurrenceProblem&,
                                              const RecurrenceOutputs<FusedFloat>&);

}  // namespace gaugeblock
