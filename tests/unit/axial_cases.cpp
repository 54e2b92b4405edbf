// Cases of the axial block: their text, their tensors, and how they shrink.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {
namespace {

TEST(AxialCaseText, IsCompleteAndReadsBack) {
  AxialCase c;
  c.B = 4;
  c.H = c.W = 32;
  c.D = 64;
  c.heads = 4;
  EXPECT_EQ(print_case(Case(c)),
            "axial:B=4,H=32,W=32,D=64,heads=4,eps=1e-05,passes=both,x=normal,weights=normal,layout="
            "contiguous,seed=1");
  Draw draw(7);
  for (int i = 0; i < 500; ++i) {
    const Case drawn(draw_axial_case(draw, 1e6));
    EXPECT_EQ(parse_case(print_case(drawn)), drawn) << print_case(drawn);
  }
}

TEST(AxialCaseText, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"axial:D=6,heads=4", "axial:D=0", "axial:heads=0", "axial:x=nrmal", "axial:weights=logits",
        "axial:eps=-1", "axial:passes=rows", "axial:layout=strided", "axial:K=3",
        "axial:x=const:", "axial:x=const", "axial:eps=nan"}) {
    try {
      (void)parse_case(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

std::uint64_t hash_of(const Problem& problem) {
  std::string bytes;
  for (const auto& [name, tensor] : problem.inputs) {
    const std::vector<float> values = tensor.values();
    bytes += name;
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  return fnv1a(bytes);
}

// The tensors of a case never change, on any platform: golden files and reports name problems by their case.
TEST(AxialCaseTensors, AreTheSameBitsEverywhere) {
  const std::vector<std::pair<const char*, std::uint64_t>> known{
      {"axial", 0x965de0f8f7f1865eU},
      {"axial:B=2,H=3,W=5,D=12,heads=3,x=normal,weights=normal,seed=42", 0xde99ee55ed30fa80U},
      {"axial:D=12,heads=3,x=uniform,weights=heads", 0x3e98291aa35e0a91U},
      {"axial:D=24,heads=3,x=small,weights=dominant", 0x3ebc78bddbe527aaU},
      {"axial:D=24,heads=3,x=large,weights=logits_200", 0x3e3e2e0102c57f2bU},
      {"axial:D=24,heads=3,x=offset,weights=logits_1e5", 0x527a07ea2acce502U},
      {"axial:D=24,heads=3,x=constant,weights=zero_qkv,passes=col", 0xd367b67b7b07d88dU},
      {"axial:D=24,heads=3,x=index,weights=zero_out,passes=row", 0x0033cbb8cb8a6858U},
      {"axial:B=2,H=4,W=3,D=8,heads=2,layout=broadcast", 0x5fa30cdaa6cb8a71U},
  };
  for (const auto& [text, hash] : known)
    EXPECT_EQ(hash_of(make_problem(parse_case(text))), hash)
        << text << " " << std::hex << hash_of(make_problem(parse_case(text)));
}

TEST(AxialCaseTensors, KeepTheirValuesInEveryLayoutThatRepeatsNothing) {
  const std::string sizes = "axial:B=2,H=3,W=4,D=8,heads=2,layout=";
  const std::uint64_t contiguous = hash_of(make_problem(parse_case(sizes + "contiguous")));
  EXPECT_EQ(hash_of(make_problem(parse_case(sizes + "padded"))), contiguous);
  EXPECT_EQ(hash_of(make_problem(parse_case(sizes + "permuted"))), contiguous);
  EXPECT_NE(hash_of(make_problem(parse_case(sizes + "broadcast"))), contiguous);
}

TEST(AxialCaseTensors, AreLegalProblemsWithIntactGuards) {
  Draw draw(11);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = make_problem(Case(draw_axial_case(draw, 1e5)));
    EXPECT_NO_THROW(check_problem(problem)) << problem.case_text;
    for (const auto& [name, tensor] : problem.inputs) {
      EXPECT_EQ(tensor.damaged_guards(), 0) << problem.case_text << " " << name;
      for (const float value : tensor.values())
        ASSERT_TRUE(std::isfinite(value)) << problem.case_text << " " << name;
    }
  }
}

// The families are what they say: logits of 1e5 are large, one token's constant is the same in every channel.
TEST(AxialCaseTensors, FollowTheirFamilies) {
  const Tensor constant = make_problem(parse_case("axial:B=1,H=2,W=3,D=4,x=constant")).input("x");
  const std::vector<float> values = constant.values();
  for (std::size_t e = 0; e < values.size(); ++e) EXPECT_EQ(values[e], values[e / 4 * 4]);
  EXPECT_NE(values[0], values[4]);

  const std::vector<float> index =
      make_problem(parse_case("axial:B=1,H=2,W=3,D=4,x=index")).input("x").values();
  for (Index h = 0; h < 2; ++h)
    for (Index w = 0; w < 3; ++w) EXPECT_EQ(index[(h * 3 + w) * 4], float(10 * h + w));
}

TEST(AxialCaseDrawing, StaysWithinItsWorkAndReachesEveryFamily) {
  Draw draw(3);
  std::set<std::pair<std::string, std::string>> seen;
  std::set<Index> head_sizes;
  int square = 0;
  for (int i = 0; i < 3000; ++i) {
    const AxialCase c = draw_axial_case(draw, 1.5e6);
    EXPECT_LE(work(c), 1.5e6);
    EXPECT_EQ(c.D % c.heads, 0);
    for (const auto& family : families(c)) seen.insert(family);
    head_sizes.insert(c.D / c.heads);
    square += c.H == c.W && c.H > 1;
  }
  EXPECT_EQ(seen.size(), 8U + 7U + 3U + 4U);
  for (const Index d : {1, 3, 16, 24, 48, 64, 128}) EXPECT_TRUE(head_sizes.contains(d)) << d;
  EXPECT_LT(square, 300);
}

TEST(AxialCaseShrinking, EndsAtTheSmallestCase) {
  AxialCase c = axial_case_from(parse_case_text(
      "axial:B=2,H=5,W=7,D=24,heads=3,eps=0.001,passes=both,x=offset,weights=heads,layout=padded,seed=9"));
  int steps = 0;
  for (std::vector<AxialCase> next = simpler(c); !next.empty(); next = simpler(c)) {
    for (const AxialCase& candidate : next) EXPECT_EQ(candidate.D % candidate.heads, 0);
    c = next.front();
    ASSERT_LT(++steps, 100);
  }
  EXPECT_EQ(
      print_case(Case(c)),
      "axial:B=1,H=1,W=1,D=1,heads=1,eps=1e-05,passes=row,x=normal,weights=normal,layout=contiguous,seed=1");
}

TEST(AxialOpeningCases, AreLegal) {
  for (const AxialCase& c : opening_axial_cases()) EXPECT_NO_THROW((void)make_problem(c));
}

}  // namespace
}  // namespace gaugeblock
