// Prints, for each mutant of a CPU form of the recurrence that does not hide and shows in numbers, the
// largest error / proved bound over a few fixed cases.
#include <algorithm>
#include <cstdio>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/verdict/verdict.h"
#include "mutant.h"

int main() {
  using namespace gaugeblock;
  for (const Mutant& mutant : all_mutants()) {
    const Variant& variant = mutant.variant;
    if (variant.operation != Operation::recurrence || variant.backend != "cpu" || mutant.hides) continue;
    double worst = 0;
    for (const char* text :
         {"recurrence:B=2,T=128,H=4,K=24,V=24,gate=uniform,beta=uniform,qkv=normal,state=writes,seed=1",
          "recurrence:B=1,T=33,H=2,K=7,V=5,gate=near_one,beta=uniform,qkv=normal,state=writes,seed=2"}) {
      const Problem problem = make_problem(parse_case(text));
      const auto oracle = make_oracle(problem);
      Problem copy = problem;
      Outputs outputs = make_outputs(problem);
      variant.run(copy, outputs);
      const Verdict verdict =
          judge_outputs(problem, *oracle, outputs, variant.arithmetic, Limits::proved_only);
      worst = std::max(worst, verdict.worst_ratio);
    }
    if (worst > 1 && worst < 1e300) std::printf("%s %.3g\n", variant.name.c_str(), worst);
  }
}
