#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/bounds/axial_forms.h"
#include "gaugeblock/verify/bounds/high_precision.h"

namespace gaugeblock {
namespace {

template <class Scalar>
std::map<std::string, std::vector<double>> truth_in(const AxialProblem& problem) {
  AxialBuffers<Scalar> buffers(problem);
  axial::unfused(problem, buffers.view);
  std::map<std::string, std::vector<double>> truth;
  for (const Scalar& value : buffers.y) truth["y"].push_back(static_cast<double>(value));
  for (const Scalar& value : buffers.row) truth["row"].push_back(static_cast<double>(value));
  return truth;
}

}  // namespace

std::map<std::string, std::vector<double>> axial_truth(const AxialProblem& problem, bool high_precision) {
  return high_precision ? truth_in<HighPrecision>(problem) : truth_in<long double>(problem);
}

}  // namespace gaugeblock
