// Every form of the axial block is the same function.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/reference/axial/fused_sequence.h"
#include "gaugeblock/reference/axial/one_pass_variance.h"
#include "gaugeblock/reference/axial/online_softmax.h"
#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/cases/case.h"

namespace gaugeblock {
namespace {

template <class Scalar>
using Form = std::function<void(const AxialProblem&, const AxialOutputs<Scalar>&)>;

template <class Scalar>
struct Buffers {
  std::vector<Scalar> y, row;
  Buffers(const Form<Scalar>& form, const AxialProblem& problem) {
    const auto [B, H, W, D] = problem.x.shape;
    y.assign(B * H * W * D, Scalar(-1));
    row = y;
    form(problem, {contiguous_view<Scalar, 4>(y.data(), problem.x.shape),
                   contiguous_view<Scalar, 4>(row.data(), problem.x.shape)});
  }
};

template <class Scalar>
std::vector<std::pair<std::string, Form<Scalar>>> forms() {
  return {{"online_softmax", axial::online_softmax<Scalar>},
          {"one_pass_variance", axial::one_pass_variance<Scalar>},
          {"fused_sequence", axial::fused_sequence<Scalar>}};
}

template <class Scalar>
double largest_difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double largest = 0;
  for (std::size_t e = 0; e < a.size(); ++e) {
    const double difference =
        std::abs(static_cast<double>(a[e] - b[e])) / (1 + std::abs(static_cast<double>(b[e])));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

class AxialForms : public testing::TestWithParam<const char*> {};

TEST_P(AxialForms, AgreeInFloat64) {
  const Problem problem = make_problem(parse_case(GetParam()));
  const AxialProblem view = axial_view(problem);
  const Buffers<double> expected(axial::unfused<double>, view);
  for (const auto& [name, form] : forms<double>()) {
    const Buffers<double> actual(form, view);
    EXPECT_LE(largest_difference(actual.y, expected.y), 1e-12) << name;
    EXPECT_LE(largest_difference(actual.row, expected.row), 1e-12) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AxialForms,
                         testing::Values("axial:B=2,H=5,W=7,D=24,heads=3",
                                         "axial:B=1,H=7,W=5,D=12,heads=12,passes=row",
                                         "axial:B=2,H=3,W=4,D=16,heads=1,passes=col,layout=padded",
                                         "axial:B=1,H=1,W=1,D=1,heads=1",
                                         "axial:B=1,H=1,W=33,D=8,heads=2,layout=permuted",
                                         "axial:B=2,H=9,W=2,D=8,heads=4,weights=logits_200",
                                         "axial:B=1,H=4,W=6,D=16,heads=2,weights=dominant,x=small",
                                         "axial:B=2,H=4,W=6,D=16,heads=2,layout=broadcast,x=uniform"));

// Two tokens, two channels, one head, worked by hand: LayerNorm with eps = 0 gives (1,-1) and (-1,1).
TEST(AxialDefinition, TwoTokensByHand) {
  const std::vector<float> x{3, 1, -2, 6};
  const std::vector<float> ones{1, 1}, zeros{0, 0}, bias{10, 20};
  const std::vector<float> qkv{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1};  // Q = K = V = n
  const std::vector<float> swap{0, 1, 1, 0};                         // W_out exchanges the two channels
  AxialProblem problem;
  problem.x = contiguous_view<const float, 4>(x.data(), {1, 1, 2, 2});
  problem.row = {contiguous_view<const float, 1>(ones.data(), {2}),
                 contiguous_view<const float, 1>(zeros.data(), {2}),
                 contiguous_view<const float, 2>(qkv.data(), {6, 2}),
                 contiguous_view<const float, 2>(swap.data(), {2, 2}),
                 contiguous_view<const float, 1>(bias.data(), {2})};
  problem.eps = 0;
  problem.passes = AxialPasses::row;
  // Logits are 2/√2 for the token itself and -2/√2 for the other one; o = ± tanh(√2) in both channels.
  const double t = std::tanh(std::sqrt(2.0));
  const std::vector<double> expected{3 + 10 - t, 1 + 20 + t, -2 + 10 + t, 6 + 20 - t};
  std::vector<std::pair<std::string, Form<double>>> all = forms<double>();
  all.emplace_back("unfused", axial::unfused<double>);
  for (const auto& [name, form] : all) {
    const Buffers<double> actual(form, problem);
    for (std::size_t e = 0; e < expected.size(); ++e)
      EXPECT_NEAR(actual.y[e], expected[e], 1e-14) << name << e;
  }
}

// What is asked for as `row` is the row pass, and y its column pass.
TEST(AxialDefinition, RowIsTheRowPass) {
  const Problem problem = make_problem(parse_case("axial:B=2,H=3,W=4,D=8,heads=2"));
  AxialProblem view = axial_view(problem);
  const Buffers<double> both(axial::unfused<double>, view);
  view.passes = AxialPasses::row;
  EXPECT_EQ(Buffers<double>(axial::unfused<double>, view).y, both.row);
  EXPECT_NE(both.row, both.y);
}

TEST(AxialOnePassVariance, DeclinesWhereItCancels) {
  const auto declines = [](const char* text) {
    const Problem problem = make_problem(parse_case(text));
    return axial::one_pass_variance_declines(axial_view(problem)).has_value();
  };
  EXPECT_FALSE(declines("axial:B=1,H=3,W=4,D=24,heads=2"));
  EXPECT_FALSE(declines("axial:B=1,H=3,W=4,D=24,heads=2,x=large"));
  EXPECT_FALSE(declines("axial:B=1,H=3,W=4,D=24,heads=2,x=small"));
  EXPECT_TRUE(declines("axial:B=1,H=3,W=4,D=24,heads=2,x=offset"));
  EXPECT_TRUE(declines("axial:B=1,H=3,W=4,D=24,heads=2,x=const:1234"));
  // Decided for the input of a column pass too: here the row pass adds the same 1000 to every channel.
  Problem problem = make_problem(parse_case("axial:B=1,H=3,W=4,D=24,heads=2,x=small,weights=zero_qkv"));
  EXPECT_FALSE(axial::one_pass_variance_declines(axial_view(problem)).has_value());
  problem.inputs.at("row_out.bias").assign(std::vector<float>(24, 1000.0F));
  EXPECT_TRUE(axial::one_pass_variance_declines(axial_view(problem)).has_value());
}

}  // namespace
}  // namespace gaugeblock
