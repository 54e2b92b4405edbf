// What must be true of every run is itself under test: each property broken once, on purpose.
#include "gaugeblock/verify/verdict/checked_run.h"

#include <gtest/gtest.h>

#include "gaugeblock/verify/cases/case.h"
#include "mutant.h"

namespace gaugeblock {
namespace {

CheckedRun run_fault(const std::string& name) {
  const Problem problem =
      make_problem(parse_case("recurrence:B=1,T=5,H=2,K=3,V=4,gate=uniform,beta=uniform,qkv=normal,state="
                              "writes,layout=padded,seed=1"));
  for (const Mutant& mutant : all_mutants())
    if (mutant.variant.name == name) return run_checked(mutant.variant, problem);
  ADD_FAILURE() << "no mutant is called " << name;
  return {};
}

TEST(CheckedRun, SeesWhatIsNotWritten) {
  EXPECT_EQ(run_fault("element_not_written").broken, "y[0,4,1,3] was never written");
}
TEST(CheckedRun, SeesAnOverwrittenInput) {
  EXPECT_NE(run_fault("input_overwritten").broken.find("the input buffer of k was changed"),
            std::string::npos);
}
TEST(CheckedRun, SeesWritesOutsideTheOutput) {
  EXPECT_NE(run_fault("writes_behind_output").broken.find("outside the view of output y"), std::string::npos);
}
TEST(CheckedRun, SeesOtherBitsOnARepeat) {
  EXPECT_NE(run_fault("changes_from_run_to_run").broken.find("other bits"), std::string::npos);
}
TEST(CheckedRun, SaysWhichRunGaveOtherBits) {
  Variant variant = all_mutants().front().variant;
  const auto other_bits = [run = variant.run](const Problem& problem, Outputs& outputs) {
    run(problem, outputs);
    Tensor& y = outputs.at("y");
    y.buffer[y.offset] += 1;
  };
  variant.run_again = {{variant.run, "a run like it"}, {other_bits, "a run unlike it"}};
  const Problem problem = make_problem(parse_case("recurrence:T=2,seed=1"));
  const std::string broken = run_checked(variant, problem).broken;
  EXPECT_EQ(broken.rfind("a run unlike it gave other bits at y[0,0,0,0]: ", 0), 0U) << broken;
}
TEST(CheckedRun, KeepsWhatAVariantThrows) {
  Variant variant = all_mutants().front().variant;
  variant.run = [](const Problem&, Outputs&) { throw std::runtime_error("the device is gone"); };
  const Problem problem = make_problem(parse_case("recurrence:T=2,seed=1"));
  EXPECT_EQ(run_checked(variant, problem).error, "the device is gone");
}
TEST(CheckedRun, LetsARightRunPass) {
  const CheckedRun run = run_fault("gate_after_write");  // wrong values, but a proper run
  EXPECT_EQ(run.broken, "");
  EXPECT_EQ(run.error, "");
}

}  // namespace
}  // namespace gaugeblock
