// Golden files: written the same twice, and every change of one is found and named.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/golden/golden.h"
#include "safetensors_bytes.h"

namespace gaugeblock {
namespace {

const std::vector<GoldenCase> two_cases{
    {"recurrence-test", "recurrence:T=3,K=2,V=3,gate=uniform,state=writes", {"gate-order"}, "test"},
    {"axial-test", "axial:H=2,W=3,D=4,heads=2", {"axis-swap"}, "test"},
};

std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The golden files of two small cases.
class SafetensorsGolden : public testing::Test {
 protected:
  SafetensorsGolden() {
    std::string name = (std::filesystem::temp_directory_path() / "gaugeblock-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder = name;
    write_golden(folder, {}, two_cases);
  }
  ~SafetensorsGolden() override { std::filesystem::remove_all(folder); }

  std::vector<std::string> differences() const { return check_golden(folder, {}, two_cases).differences; }

  /// Whether one of the differences has `text` in it.
  bool finds(const std::string& text) const {
    for (const std::string& difference : differences())
      if (difference.find(text) != std::string::npos) return true;
    return false;
  }

  void change(const std::string& id, const std::function<void(SafetensorsFile&)>& spoil) const {
    SafetensorsFile file = read_safetensors(folder / (id + ".safetensors"));
    spoil(file);
    write_safetensors(file, folder / (id + ".safetensors"));
  }

  std::filesystem::path folder;
};

/// Multiplies element 1 of a tensor.
template <class Value>
std::function<void(SafetensorsFile&)> scaled(const std::string& tensor, double factor) {
  return [=](SafetensorsFile& file) {
    Value& value = std::get<std::vector<Value>>(file.tensors.at(tensor).values).at(1);
    value = static_cast<Value>(value * factor);
  };
}

TEST_F(SafetensorsGolden, AreTheSameOnEveryRun) {
  EXPECT_EQ(differences(), std::vector<std::string>{});
  const std::string before = content(folder / "axial-test.safetensors") + content(folder / "index.json");
  write_golden(folder, {}, two_cases);
  EXPECT_EQ(content(folder / "axial-test.safetensors") + content(folder / "index.json"), before);
}

TEST_F(SafetensorsGolden, HoldTheProblemOfTheirCase) {
  const SafetensorsFile file = read_safetensors(folder / "recurrence-test.safetensors");
  const Problem problem = read_problem(file);
  EXPECT_EQ(problem.case_text, print_case(parse_case(two_cases[0].case_text)));
  const GoldenData golden = read_golden(file, problem);
  EXPECT_EQ(golden.at("y").expected.size(), 9U);
  EXPECT_EQ(golden.at("final_state").bound.size(), 6U);
}

TEST_F(SafetensorsGolden, ShowAChangedInput) {
  change("recurrence-test", scaled<float>("q", 1 + 1e-7));
  EXPECT_TRUE(finds("recurrence-test.safetensors: q: expected"));
}

TEST_F(SafetensorsGolden, ShowAChangedExpectedValue) {
  change("axial-test", scaled<double>("expected.y", 1 + 1e-15));
  EXPECT_TRUE(finds("axial-test.safetensors: expected.y: expected"));
}

TEST_F(SafetensorsGolden, ShowAChangedBound) {
  change("axial-test", scaled<double>("bound.y", 1 + 1e-8));
  EXPECT_TRUE(finds("axial-test.safetensors: bound.y: expected"));
}

TEST_F(SafetensorsGolden, ShowByTheHashWhatIsWithinTheTolerance) {
  change("axial-test", scaled<double>("sigma.y", 1 + 1e-3));
  EXPECT_FALSE(finds("sigma.y"));
  EXPECT_TRUE(finds("/files/1/sha256"));
}

TEST_F(SafetensorsGolden, ShowOtherMetadataAndTensors) {
  change("axial-test", [](SafetensorsFile& file) {
    file.metadata["gaugeblock.eps"] = "1e-06";
    file.tensors.erase("sigma.y");
    file.tensors["extra"] = {{1}, std::vector<float>{1}};
  });
  EXPECT_TRUE(finds("axial-test.safetensors: metadata: expected"));
  EXPECT_TRUE(finds("axial-test.safetensors: sigma.y: expected it; found none"));
  EXPECT_TRUE(finds("axial-test.safetensors: \"extra\": expected no such tensor"));
}

TEST_F(SafetensorsGolden, ShowMissingAndStrangeFiles) {
  std::filesystem::rename(folder / "axial-test.safetensors", folder / "other.safetensors");
  EXPECT_TRUE(finds("axial-test.safetensors: expected a readable file"));
  EXPECT_TRUE(finds("other.safetensors: expected golden files alone"));
  EXPECT_NE(test::refusal([&] { write_golden(folder, {}, two_cases); }).find("found other.safetensors there"),
            std::string::npos);
}

TEST_F(SafetensorsGolden, RefuseAFolderWithoutAnIndex) {
  std::filesystem::remove(folder / "index.json");
  EXPECT_NE(test::refusal([&] { differences(); }).find("index.json: expected a readable file"),
            std::string::npos);
  std::ofstream(folder / "index.json") << "{";
  EXPECT_NE(test::refusal([&] { differences(); }).find("index.json: expected JSON"), std::string::npos);
}

TEST(SafetensorsGoldenCases, HaveIdsOfTheirOwnAndExplainedFlags) {
  std::set<std::string> ids, used, explained;
  for (const auto& [flag, meaning] : golden_flags()) EXPECT_TRUE(explained.insert(flag).second) << flag;
  for (const GoldenCase& golden : golden_cases()) {
    EXPECT_TRUE(ids.insert(golden.id).second) << golden.id;
    EXPECT_NO_THROW(parse_case(golden.case_text)) << golden.case_text;
    EXPECT_FALSE(golden.flags.empty()) << golden.id;
    used.insert(golden.flags.begin(), golden.flags.end());
  }
  EXPECT_EQ(used, explained);
}

}  // namespace
}  // namespace gaugeblock
