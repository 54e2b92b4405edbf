#include "gaugeblock/verify/bounds/monte_carlo.h"
#include "gaugeblock/verify/bounds/recurrence_forms_impl.h"

namespace gaugeblock {

template void run_recurrence_form<MonteCarlo>(const Arithmetic&, const RecurrenceProblem&,
                                              const RecurrenceOutputs<MonteCarlo>&);

}  // namespace gaugeblock
