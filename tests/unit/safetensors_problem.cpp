// Problems, outputs and golden values in files: what belongs there, and one clear line for what does not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/verify/files/problem_file.h"
#include "safetensors_bytes.h"

namespace gaugeblock {
namespace {

using test::refusal;

FileTensor filled(std::vector<Index> shape) {
  std::size_t elements = 1;
  for (const Index extent : shape) elements *= static_cast<std::size_t>(extent);
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i) / 8;
  return {std::move(shape), std::move(values)};
}

/// B=1, T=3, H=2, K=4, V=5.
SafetensorsFile recurrence_example() {
  SafetensorsFile file;
  file.name = "file";
  file.tensors = {{"q", filled({1, 3, 2, 4})}, {"k", filled({1, 3, 2, 4})},
                  {"v", filled({1, 3, 2, 5})}, {"gate", filled({1, 3, 2})},
                  {"beta", filled({1, 3, 2})}, {"initial_state", filled({1, 2, 4, 5})}};
  return file;
}

/// B=1, H=2, W=3, D=4, heads=2.
SafetensorsFile axial_example() {
  SafetensorsFile file;
  file.name = "file";
  file.metadata = {{"gaugeblock.heads", "2"}};
  file.tensors["x"] = filled({1, 2, 3, 4});
  for (const std::string pass : {"row", "col"}) {
    file.tensors[pass + "_norm.weight"] = filled({4});
    file.tensors[pass + "_norm.bias"] = filled({4});
    file.tensors[pass + "_qkv.weight"] = filled({12, 4});
    file.tensors[pass + "_out.weight"] = filled({4, 4});
    file.tensors[pass + "_out.bias"] = filled({4});
  }
  return file;
}

TEST(SafetensorsProblem, UnderstandsFilesWithoutMetadata) {
  const Problem recurrence = read_problem(recurrence_example());
  EXPECT_EQ(recurrence.operation, Operation::recurrence);
  EXPECT_EQ(recurrence.inputs.size(), 6U);
  EXPECT_EQ(recurrence.input("v").values(), std::get<std::vector<float>>(filled({1, 3, 2, 5}).values));
  EXPECT_EQ(recurrence.case_text, "");

  const Problem axial = read_problem(axial_example());
  EXPECT_EQ(axial.operation, Operation::axial);
  EXPECT_EQ(axial.attributes.heads, 2);
  EXPECT_EQ(axial.attributes.eps, 1e-5F);
  EXPECT_EQ(axial.attributes.passes, AxialPasses::both);
}

TEST(SafetensorsProblem, ReadsBackTheSame) {
  for (auto file : {recurrence_example(), axial_example()}) {
    Problem problem = read_problem(file);
    problem.case_text = "a case";
    problem.attributes.eps = 0.1F;
    problem.attributes.passes = AxialPasses::row;
    const SafetensorsFile written = problem_file(problem);
    EXPECT_EQ(written.metadata.at("gaugeblock.format"), "1");
    const Problem back = read_problem(written);
    EXPECT_EQ(back.operation, problem.operation);
    EXPECT_EQ(back.case_text, "a case");
    if (problem.operation == Operation::axial) {
      EXPECT_EQ(back.attributes.heads, 2);
      EXPECT_EQ(back.attributes.eps, 0.1F);
      EXPECT_EQ(back.attributes.passes, AxialPasses::row);
    }
    EXPECT_EQ(print_safetensors(problem_file(back)), print_safetensors(written));
  }
}

TEST(SafetensorsProblem, OnePassNeedsOnlyItsOwnParameters) {
  SafetensorsFile file = axial_example();
  file.metadata["gaugeblock.passes"] = "col";
  std::erase_if(file.tensors, [](const auto& item) { return item.first.starts_with("row_"); });
  EXPECT_EQ(read_problem(file).inputs.size(), 6U);
}

struct Wrong {
  std::string fault;
  SafetensorsFile (*example)();
  std::function<void(SafetensorsFile&)> spoil;
  std::string message;  // a part of it
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.fault;
}

class ProblemRefusal : public testing::TestWithParam<Wrong> {};

TEST_P(ProblemRefusal, SaysWhatIsWrong) {
  SafetensorsFile file = GetParam().example();
  GetParam().spoil(file);
  const std::string message = refusal([&] { read_problem(file); });
  EXPECT_EQ(message.substr(0, 6), "file: ") << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

std::function<void(SafetensorsFile&)> metadata(const std::string& key, const std::string& value) {
  return [=](SafetensorsFile& file) { file.metadata["gaugeblock." + key] = value; };
}
std::function<void(SafetensorsFile&)> tensor(const std::string& name, const std::vector<Index>& shape) {
  return [=](SafetensorsFile& file) { file.tensors[name] = filled(shape); };
}
std::function<void(SafetensorsFile&)> without(const std::string& name) {
  return [=](SafetensorsFile& file) { file.tensors.erase(name); };
}

INSTANTIATE_TEST_SUITE_P(
    Recurrence, ProblemRefusal,
    testing::Values(Wrong{"Nothing", recurrence_example, [](SafetensorsFile& file) { file.tensors.clear(); },
                          "found none of them"},
                    Wrong{"BothOperations", recurrence_example, tensor("x", {1, 1, 1, 1}),
                          "found those of both"},
                    Wrong{"MissingV", recurrence_example, without("v"), "'v'"},
                    Wrong{"MissingQ", recurrence_example, without("q"), "'q'"},
                    Wrong{"UnknownTensor", recurrence_example, tensor("initial_sate", {1}),
                          "found \"initial_sate\" (did you mean 'initial_state'?)"},
                    Wrong{"Rank", recurrence_example, tensor("gate", {3, 2}), "gate: expected shape [B,T,H]"},
                    Wrong{"Extents", recurrence_example, tensor("k", {1, 3, 2, 5}),
                          "k: expected shape [B,T,H,K] = [1,3,2,4]; found [1,3,2,5]"},
                    Wrong{"ZeroHeads", recurrence_example, tensor("q", {1, 3, 0, 4}), "found [1,3,0,4]"},
                    Wrong{"Float64", recurrence_example,
                          [](SafetensorsFile& file) { file.tensors["beta"].values = std::vector<double>(6); },
                          "tensor \"beta\": expected F32; found F64"},
                    Wrong{"Format", recurrence_example, metadata("format", "2"),
                          "gaugeblock.format: expected 1; found \"2\""},
                    Wrong{"GateSpace", recurrence_example, metadata("gate_space", "log"),
                          "gaugeblock.gate_space: expected linear"},
                    Wrong{"Operation", recurrence_example, metadata("op", "attention"),
                          "gaugeblock.op: expected recurrence or axial; found \"attention\""},
                    Wrong{"OtherOperation", recurrence_example,
                          [](SafetensorsFile& file) {
                            file.metadata = {{"gaugeblock.op", "axial"}, {"gaugeblock.heads", "1"}};
                          },
                          "found \"beta\""},
                    Wrong{"HeadsDiffer", recurrence_example, metadata("heads", "3"),
                          "gaugeblock.heads: expected 2, as the tensors have; found \"3\""},
                    Wrong{"UnknownKey", recurrence_example, metadata("gatespace", "linear"),
                          "found \"gaugeblock.gatespace\""}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Axial, ProblemRefusal,
    testing::Values(Wrong{"NoHeads", axial_example, [](SafetensorsFile& file) { file.metadata.clear(); },
                          "metadata gaugeblock.heads: expected the number of attention heads; found none"},
                    Wrong{"ZeroHeads", axial_example, metadata("heads", "0"),
                          "expected a whole number from 1; found \"0\""},
                    Wrong{"HeadsText", axial_example, metadata("heads", "2 "), "found \"2 \""},
                    Wrong{"HeadsDivide", axial_example, metadata("heads", "3"), "expected a divisor of D=4"},
                    Wrong{"NegativeEps", axial_example, metadata("eps", "-1"),
                          "gaugeblock.eps: expected a finite number"},
                    Wrong{"InfiniteEps", axial_example, metadata("eps", "inf"),
                          "gaugeblock.eps: expected a finite number"},
                    Wrong{"Passes", axial_example, metadata("passes", "rows"),
                          "gaugeblock.passes: expected both, row or col; found \"rows\""},
                    Wrong{"Dropout", axial_example, metadata("dropout", "0.1"),
                          "gaugeblock.dropout: expected 0"},
                    Wrong{"MissingWeight", axial_example, without("col_out.bias"), "'col_out.bias'"},
                    Wrong{"QkvShape", axial_example, tensor("row_qkv.weight", {4, 12}),
                          "row_qkv.weight: expected shape [3D,D] = [12,4]; found [4,12]"},
                    Wrong{"QkvBias", axial_example, tensor("row_qkv.bias", {12}), "found \"row_qkv.bias\""},
                    Wrong{"ZeroWidth", axial_example, tensor("x", {1, 2, 0, 4}), "found [1,2,0,4]"}),
    [](const auto& info) { return info.param.fault; });

TEST(SafetensorsProblem, DropoutOfZeroIsTheIdentity) {
  for (const std::string zero : {"0", "0.0"}) {
    SafetensorsFile file = axial_example();
    file.metadata["gaugeblock.dropout"] = zero;
    EXPECT_NO_THROW(read_problem(file)) << zero;
  }
}

TEST(SafetensorsProblem, OutputsAreTakenOrRefusedByName) {
  const Problem problem = read_problem(recurrence_example());
  SafetensorsFile file;
  file.name = "actual";
  const auto message = [&] { return refusal([&] { read_outputs(file, problem); }); };
  file.tensors["y"] = filled({1, 3, 2, 5});
  EXPECT_EQ(message(), "actual: expected the output \"final_state\" [1,2,4,5]; found no tensor of this name");
  file.tensors["final_state"] = filled({1, 2, 5, 4});
  EXPECT_EQ(message(), "actual: tensor \"final_state\": expected shape [1,2,4,5]; found [1,2,5,4]");
  file.tensors["final_state"] = {{1, 2, 4, 5}, std::vector<double>(40)};
  EXPECT_EQ(message(), "actual: tensor \"final_state\": expected F32; found F64");
  file.tensors["final_state"] = filled({1, 2, 4, 5});
  const Outputs outputs = read_outputs(file, problem);
  EXPECT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs.at("y").values(), std::get<std::vector<float>>(file.tensors["y"].values));
  file.tensors["row"] = filled({1});
  EXPECT_NE(message(), "");

  const Problem axial = read_problem(axial_example());
  SafetensorsFile written;
  Outputs both = make_outputs(axial, true);
  add_outputs(written, both);
  EXPECT_EQ(read_outputs(written, axial).size(), 2U);
  written.tensors.erase("row");
  EXPECT_EQ(read_outputs(written, axial).size(), 1U);
}

TEST(SafetensorsProblem, GoldenValuesComeInThrees) {
  SafetensorsFile file = recurrence_example();
  const Problem problem = read_problem(file);
  EXPECT_TRUE(read_golden(file, problem).empty());

  GoldenData golden;
  const double infinity = std::numeric_limits<double>::infinity();
  golden["y"] = {std::vector<double>(30, 1), std::vector<double>(30, infinity), std::vector<double>(30, 0)};
  add_golden(file, golden, problem);
  EXPECT_EQ(read_problem(file).inputs.size(), 6U);
  const GoldenData back = read_golden(file, problem);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back.at("y").bound, golden["y"].bound);

  const auto message = [&] { return refusal([&] { read_golden(file, problem); }); };
  std::get<std::vector<double>>(file.tensors["bound.y"].values)[7] = std::nan("");
  EXPECT_EQ(message(),
            "file: tensor \"bound.y\": expected no value below 0 and no NaN; found nan at [0,0,1,2]");
  std::get<std::vector<double>>(file.tensors["bound.y"].values)[7] = -1;
  EXPECT_NE(message().find("found -1 at [0,0,1,2]"), std::string::npos);
  file.tensors["bound.y"] = filled({1, 3, 2, 5});
  EXPECT_EQ(message(), "file: tensor \"bound.y\": expected F64; found F32");
  file.tensors.erase("bound.y");
  EXPECT_EQ(message(), "file: expected the tensor \"bound.y\" beside \"expected.y\"; found none");
}

}  // namespace
}  // namespace gaugeblock
