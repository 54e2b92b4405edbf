#include "gaugeblock/verify/bounds/recurrence_forms_impl.h"

namespace gaugeblock {

template void run_recurrence_form<float>(const Arithmetic&, const RecurrenceProblem&,
                                         const RecurrenceOutputs<float>&);

}  // namespace gaugeblock
