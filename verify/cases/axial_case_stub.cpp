// Stands in for axial cases until they exist; every definition is weak.
#include "gaugeblock/verify/cases/axial_case.h"
#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {

[[gnu::weak]] AxialCase axial_case_from(const CaseText&) {
  throw InputError("axial cases do not exist yet");
}
[[gnu::weak]] CaseText case_text(const AxialCase&) {
  return {"axial", {}};
}
[[gnu::weak]] Problem make_problem(const AxialCase&) {
  throw InputError("axial cases do not exist yet");
}
[[gnu::weak]] std::vector<AxialCase> simpler(const AxialCase&) {
  return {};
}
[[gnu::weak]] std::vector<std::pair<std::string, std::string>> families(const AxialCase&) {
  return {};
}
[[gnu::weak]] double work(const AxialCase&) {
  return 0;
}
[[gnu::weak]] AxialCase draw_axial_case(Draw&, double) {
  return {};
}

}  // namespace gaugeblock
