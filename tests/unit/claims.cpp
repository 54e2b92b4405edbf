// A verdict names the claim that its bound rests on: it must be the one that the variant names.
#include <gtest/gtest.h>

#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {
namespace {

void expect_of_claim(Oracle& oracle, const std::string& output, const Arithmetic& arithmetic,
                     const std::string& claim) {
  for (const std::string& id : oracle.claims_about(output, arithmetic))
    EXPECT_TRUE(id == claim || id.starts_with(claim + ".")) << id << " is no part of " << claim;
}

TEST(Claims, TheOracleNamesTheClaimOfEveryVariant) {
  const Problem recurrence = make_problem(parse_case("recurrence:T=3,K=2,V=2"));
  const Problem axial = make_problem(parse_case("axial:H=2,W=3,D=4,heads=2"));
  const auto of_recurrence = make_oracle(recurrence), of_axial = make_oracle(axial);
  for (const Variant& variant : all_variants()) {
    SCOPED_TRACE(variant.name + " " + variant.backend);
    if (variant.operation == Operation::recurrence)
      for (const char* output : {"y", "final_state"})
        expect_of_claim(*of_recurrence, output, variant.arithmetic, variant.claim);
    else
      expect_of_claim(*of_axial, "y", variant.arithmetic, variant.claim);
  }
  // Their variants are in builds with CUDA only.
  expect_of_claim(*of_recurrence, "y", {.form = "chunked", .chunk = 64, .operands = Operands::split_half},
                  "recurrence.chunked_split_half");
  expect_of_claim(*of_axial, "y", {.form = "unfused", .operands = Operands::split_half}, "axial.split_half");
}

}  // namespace
}  // namespace gaugeblock
