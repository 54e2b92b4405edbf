// Relations that ask for the same bits compare runs in one layout: a variant may take another path, with other
// roundings, where x lies otherwise.
#include "gaugeblock/verify/relations/axial_relations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {
namespace {

Variant unfused() {
  const std::vector<Variant>& all = all_variants();
  return *std::find_if(all.begin(), all.end(), [](const Variant& variant) {
    return variant.operation == Operation::axial && variant.name == "unfused" && variant.backend == "cpu";
  });
}

/// y with every element moved to the next float.
void round_otherwise(Outputs& outputs) {
  std::vector<float> y = outputs.at("y").values();
  for (float& value : y) value = std::nextafter(value, 2 * value);
  outputs.at("y").assign(y);
}

RelationResult::Kind judged(const Variant& variant, const std::string& relation) {
  const Problem problem =
      make_problem(parse_case("axial:B=2,H=3,W=4,D=8,heads=2,passes=row,layout=padded,seed=1"));
  const auto oracle = make_oracle(problem);
  DerivedOracles derived;
  const Outputs outputs = run_on(variant, problem);
  for (const Relation& one : axial_relations())
    if (one.name == relation) return one.check({variant, problem, *oracle, derived, outputs, 1}).kind;
  throw std::logic_error("no relation " + relation);
}

TEST(AxialRelations, AllowOtherBitsForAnotherLayout) {
  Variant variant = unfused();
  variant.run = [plain = variant.run](const Problem& problem, Outputs& outputs) {
    plain(problem, outputs);
    const Tensor& x = problem.input("x");
    if (x.stride != Tensor::contiguous(x.shape).stride) round_otherwise(outputs);
  };
  EXPECT_EQ(judged(variant, "non_finite"), RelationResult::Kind::holds);
  EXPECT_EQ(judged(variant, "permuted_sequences"), RelationResult::Kind::holds);
}

TEST(AxialRelations, FindOtherBitsInOtherSequences) {
  Variant variant = unfused();
  variant.run = [plain = variant.run](const Problem& problem, Outputs& outputs) {
    plain(problem, outputs);
    const std::vector<float> x = problem.input("x").values();
    const bool is_finite = std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); });
    if (!is_finite) round_otherwise(outputs);
  };
  EXPECT_EQ(judged(variant, "non_finite"), RelationResult::Kind::broken);

  variant.run = [plain = unfused().run](const Problem& problem, Outputs& outputs) {
    plain(problem, outputs);
    std::vector<float> y = outputs.at("y").values();
    y[0] = std::nextafter(y[0], 2 * y[0]);  // the first sequence, whichever it is
    outputs.at("y").assign(y);
  };
  EXPECT_EQ(judged(variant, "permuted_sequences"), RelationResult::Kind::broken);
}

}  // namespace
}  // namespace gaugeblock
