// One oracle for each problem that relations make, shared by all variants.
#include <gtest/gtest.h>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/relations/relation.h"

namespace gaugeblock {
namespace {

TEST(DerivedOracles, AreMadeOnceAndNeverForAnotherProblem) {
  const Problem problem = make_problem(parse_case("recurrence:T=3,K=2,V=2"));
  DerivedOracles derived;
  Oracle& oracle = derived.of(problem);
  EXPECT_EQ(&derived.of(Problem(problem)), &oracle);
  EXPECT_EQ(oracle.expected("y"), make_oracle(problem)->expected("y"));

  Problem other = problem;
  other.inputs["v"] = mapped(problem.input("v"), [](const auto&, float value) { return -value; });
  EXPECT_NE(&derived.of(other), &oracle);
  EXPECT_EQ(derived.of(other).expected("y"), make_oracle(other)->expected("y"));
}

}  // namespace
}  // namespace gaugeblock
