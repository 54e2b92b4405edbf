// Problems from outside: every rule on names and shapes, broken by itself; views and outputs.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {
namespace {

Problem recurrence_problem() {
  Problem problem;
  problem.inputs["q"] = Tensor::contiguous({2, 3, 4, 5});
  problem.inputs["k"] = Tensor::contiguous({2, 3, 4, 5});
  problem.inputs["v"] = Tensor::contiguous({2, 3, 4, 6});
  problem.inputs["gate"] = Tensor::contiguous({2, 3, 4});
  problem.inputs["beta"] = Tensor::contiguous({2, 3, 4});
  return problem;
}

Problem axial_problem() {
  Problem problem;
  problem.operation = Operation::axial;
  problem.attributes.heads = 2;
  problem.inputs["x"] = Tensor::contiguous({1, 2, 3, 4});
  for (const std::string pass : {"row", "col"}) {
    problem.inputs[pass + "_norm.weight"] = Tensor::contiguous({4});
    problem.inputs[pass + "_norm.bias"] = Tensor::contiguous({4});
    problem.inputs[pass + "_qkv.weight"] = Tensor::contiguous({12, 4});
    problem.inputs[pass + "_out.weight"] = Tensor::contiguous({4, 4});
    problem.inputs[pass + "_out.bias"] = Tensor::contiguous({4});
  }
  return problem;
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(not refused)";
}

TEST(CasesProblem, NamesReadAsTheyPrint) {
  for (const Operation operation : {Operation::recurrence, Operation::axial})
    EXPECT_EQ(parse_operation(name(operation)), operation);
  for (const AxialPasses passes : {AxialPasses::both, AxialPasses::row, AxialPasses::col})
    EXPECT_EQ(parse_passes(name(passes)), passes);
  EXPECT_EQ(refusal_of([] { parse_operation("axal"); }),
            "operation: expected one of recurrence, axial; found 'axal' (did you mean 'axial'?)");
  EXPECT_EQ(refusal_of([] { parse_passes("rows"); }),
            "passes: expected one of both, row, col; found 'rows' (did you mean 'row'?)");
}

TEST(CasesProblem, LegalProblemsPass) {
  Problem problem = recurrence_problem();
  EXPECT_NO_THROW(check_problem(problem));
  problem.inputs["initial_state"] = Tensor::contiguous({2, 4, 5, 6});
  EXPECT_NO_THROW(check_problem(problem));
  EXPECT_EQ(sizes_text(problem), "B=2,T=3,H=4,K=5,V=6");
  EXPECT_NO_THROW(check_problem(axial_problem()));
  EXPECT_EQ(sizes_text(axial_problem()), "B=1,H=2,W=3,D=4,heads=2");
}

TEST(CasesProblem, EachBrokenRuleOfTheRecurrenceNamesTheTensor) {
  const auto refusal_with = [](const std::string& tensor, std::vector<Index> shape) {
    Problem problem = recurrence_problem();
    problem.inputs[tensor] = Tensor::contiguous(std::move(shape));
    return refusal_of([&] { check_problem(problem); });
  };
  EXPECT_EQ(refusal_with("q", {2, 3, 4}), "q: expected shape [B,T,H,K]; found [2,3,4]");
  EXPECT_EQ(refusal_with("v", {2, 3, 4, 5, 6}), "v: expected shape [B,T,H,V]; found [2,3,4,5,6]");
  EXPECT_EQ(refusal_with("q", {2, 3, 4, 0}),
            "q: expected every extent of [B,T,H,K] but T to be at least 1; found [2,3,4,0]");
  EXPECT_EQ(refusal_with("v", {2, 3, 4, 0}),
            "v: expected every extent of [B,T,H,V] but T to be at least 1; found [2,3,4,0]");
  EXPECT_EQ(refusal_with("k", {2, 3, 4, 6}), "k: expected shape [B,T,H,K] = [2,3,4,5]; found [2,3,4,6]");
  EXPECT_EQ(refusal_with("v", {2, 2, 4, 6}), "v: expected shape [B,T,H,V] = [2,3,4,6]; found [2,2,4,6]");
  EXPECT_EQ(refusal_with("gate", {2, 4, 3}), "gate: expected shape [B,T,H] = [2,3,4]; found [2,4,3]");
  EXPECT_EQ(refusal_with("beta", {2, 3, 4, 1}), "beta: expected shape [B,T,H] = [2,3,4]; found [2,3,4,1]");
  EXPECT_EQ(refusal_with("initial_state", {2, 4, 6, 5}),
            "initial_state: expected shape [B,H,K,V] = [2,4,5,6]; found [2,4,6,5]");
  EXPECT_EQ(refusal_with("gates", {2, 3, 4}),
            "input tensor of recurrence: expected one of q, k, v, gate, beta, initial_state; found 'gates' "
            "(did you mean "
            "'gate'?)");
  for (const std::string tensor : {"q", "k", "v", "gate", "beta"}) {
    Problem problem = recurrence_problem();
    problem.inputs.erase(tensor);
    EXPECT_EQ(refusal_of([&] { check_problem(problem); }),
              tensor + ": expected input '" + tensor + "' of recurrence; found no such tensor");
  }
}

TEST(CasesProblem, EachBrokenRuleOfTheAxialBlockNamesTheTensor) {
  const auto refusal_after = [](const std::function<void(Problem&)>& change) {
    Problem problem = axial_problem();
    change(problem);
    return refusal_of([&] { check_problem(problem); });
  };
  const auto refusal_with = [&](const std::string& tensor, const std::vector<Index>& shape) {
    return refusal_after([&](Problem& problem) { problem.inputs[tensor] = Tensor::contiguous(shape); });
  };
  EXPECT_EQ(refusal_with("x", {2, 3, 4}), "x: expected shape [B,H,W,D]; found [2,3,4]");
  EXPECT_EQ(refusal_with("x", {1, 0, 3, 4}),
            "x: expected every extent of [B,H,W,D] to be at least 1; found [1,0,3,4]");
  EXPECT_EQ(refusal_with("row_norm.weight", {5}), "row_norm.weight: expected shape [D] = [4]; found [5]");
  EXPECT_EQ(refusal_with("col_qkv.weight", {4, 12}),
            "col_qkv.weight: expected shape [3D,D] = [12,4]; found [4,12]");
  EXPECT_EQ(refusal_with("col_out.weight", {4}), "col_out.weight: expected shape [D,D] = [4,4]; found [4]");
  EXPECT_EQ(refusal_after([](Problem& problem) { problem.inputs.erase("col_out.bias"); }),
            "col_out.bias: expected input 'col_out.bias' of axial; found no such tensor");
  const std::string misnamed = refusal_with("row_qkv.bias", {12});
  EXPECT_NE(misnamed.find("found 'row_qkv.bias'"), std::string::npos) << misnamed;
  for (const Index heads : {Index{0}, Index{3}, Index{-2}, Index{8}})
    EXPECT_EQ(refusal_after([&](Problem& problem) { problem.attributes.heads = heads; }),
              "heads: expected a divisor of D=4 that is at least 1; found " + std::to_string(heads));
  for (const float eps :
       {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(refusal_after([&](Problem& problem) {
                problem.attributes.eps = eps;
              }).find("eps: expected a finite number that is not negative; found "),
              0U);
}

// The parameters of a pass that does not run may be left out, and are checked when they are there.
TEST(CasesProblem, OnlyThePassesThatRunNeedParameters) {
  for (const auto& [passes, idle] :
       {std::pair{AxialPasses::row, "col"}, std::pair{AxialPasses::col, "row"}}) {
    Problem problem = axial_problem();
    problem.attributes.passes = passes;
    for (const char* tensor : {"_norm.weight", "_norm.bias", "_qkv.weight", "_out.weight", "_out.bias"})
      problem.inputs.erase(std::string(idle) + tensor);
    EXPECT_NO_THROW(check_problem(problem));
    EXPECT_EQ(axial_view(problem).passes, passes);
    problem.attributes.passes = AxialPasses::both;
    EXPECT_THROW(check_problem(problem), InputError);
    problem.attributes.passes = passes;
    problem.inputs[std::string(idle) + "_out.bias"] = Tensor::contiguous({9});
    EXPECT_THROW(check_problem(problem), InputError);
  }
}

TEST(CasesProblem, OutputsArePoisonedAndHaveTheShapesOfTheDefinition) {
  Outputs outputs = make_outputs(recurrence_problem());
  EXPECT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs.at("y").shape, (std::vector<Index>{2, 3, 4, 6}));
  EXPECT_EQ(outputs.at("final_state").shape, (std::vector<Index>{2, 4, 5, 6}));
  for (const float value : outputs.at("y").buffer) EXPECT_TRUE(same_bits(value, poison()));
  recurrence_view(outputs).y(1, 2, 3, 5) = 7;
  EXPECT_EQ(outputs.at("y").values().back(), 7);

  Problem axial = axial_problem();
  EXPECT_EQ(make_outputs(axial).size(), 1U);
  EXPECT_EQ(make_outputs(axial, true).size(), 2U);
  EXPECT_EQ(make_outputs(axial, true).at("row").shape, axial.input("x").shape);
  axial.attributes.passes = AxialPasses::row;
  EXPECT_EQ(make_outputs(axial, true).size(), 1U) << "y is the row pass's result";
  Outputs without_row = make_outputs(axial), with_row = make_outputs(axial_problem(), true);
  EXPECT_FALSE(axial_view(without_row).row.has_value());
  EXPECT_TRUE(axial_view(with_row).row.has_value());
}

TEST(CasesProblem, ViewsShowTheTensors) {
  Problem problem = recurrence_problem();
  problem.inputs["gate"] = Tensor::strided({2, 3, 4}, {0, 9, 2}, 1);
  std::vector<float> gates(24, 0.5F);
  gates.back() = 3;
  problem.inputs["gate"].assign(gates);
  const RecurrenceProblem view = recurrence_view(problem);
  EXPECT_EQ(view.batches(), 2);
  EXPECT_EQ(view.steps(), 3);
  EXPECT_EQ(view.heads(), 4);
  EXPECT_EQ(view.key_size(), 5);
  EXPECT_EQ(view.value_size(), 6);
  EXPECT_FALSE(view.initial_state.has_value());
  EXPECT_EQ(view.gate(0, 2, 3), 3) << "stride 0 along the batch";

  const AxialProblem axial = axial_view(axial_problem());
  EXPECT_EQ(axial.heads, 2);
  EXPECT_EQ(axial.row.qkv_weight.shape, (std::array<Index, 2>{12, 4}));
  EXPECT_EQ(axial.col.out_bias.shape, (std::array<Index, 1>{4}));
}

}  // namespace
}  // namespace gaugeblock
