// Over generated problems: every CPU form of the axial block stays within both bounds, and every relation
// holds.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gaugeblock/reference/axial/fused_sequence.h"
#include "gaugeblock/reference/axial/one_pass_variance.h"
#include "gaugeblock/reference/axial/online_softmax.h"
#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/verify/bounds/axial_bound.h"
#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/cases/arbitrary_case.h"
#include "gaugeblock/verify/report/campaign.h"

namespace rc {
// Prints a counterexample as the case text that repeats it.
inline void showValue(const gaugeblock::AxialCase& c, std::ostream& os) {
  os << gaugeblock::print_case(gaugeblock::Case(c));
}
}  // namespace rc

namespace gaugeblock {
namespace {

// Small problems: many of them say more than a few large ones, and a counterexample shrinks fast.
constexpr double largest_work = 20000;

std::vector<const Variant*> cpu_variants() {
  std::vector<const Variant*> variants;
  for (const Variant& variant : all_variants())
    if (variant.operation == Operation::axial && variant.backend == "cpu") variants.push_back(&variant);
  return variants;
}

RC_GTEST_PROP(AxialVariants, StayWithinTheirBounds, ()) {
  const Case c = *arbitrary_case(Operation::axial, largest_work);
  const std::vector<const Variant*> variants = cpu_variants();
  const std::vector<CaseVerdict> results = check_case(variants, c, RelationEffort::all);
  for (std::size_t i = 0; i < results.size(); ++i) {
    RC_LOG() << variants[i]->name << ": " << name(results[i].verdict.outcome) << " " << results[i].message
             << '\n';
    RC_ASSERT(results[i].verdict.outcome == Outcome::pass || results[i].verdict.outcome == Outcome::vacuous ||
              results[i].verdict.outcome == Outcome::unsupported);
  }
}

// Where correct kernels were once suspected.
TEST(AxialVariants, AreNotSuspectedAgain) {
  std::vector<const Variant*> variants;
  for (const Variant& variant : all_variants())
    if (variant.operation == Operation::axial && variant.backend != "cuda") variants.push_back(&variant);
  // The plain forms' sums for the mean are exact, that of a tree is not; tokens repeat and err alike.
  for (const char* text : {"axial:H=1,W=1,D=5,heads=5,passes=col,x=offset,seed=936591",
                           "axial:H=5,W=17,D=6,heads=3,passes=both,x=constant,layout=broadcast,seed=278268"})
    for (const CaseVerdict& result : check_case(variants, parse_case(text), RelationEffort::some))
      EXPECT_TRUE(result.verdict.outcome == Outcome::pass || result.verdict.outcome == Outcome::unsupported)
          << result.message;

  // Sixteen equal tokens whose mean is one ulp further off than that of the plain forms: by 0.01627 on an H200.
  const Problem problem = make_problem(
      parse_case("axial:H=16,W=32,D=18,heads=6,passes=col,x=offset,layout=broadcast,seed=304968"));
  const Arithmetic arithmetic{
      .form = "online_softmax", .exp_error = 2.5, .reciprocal_root = true, .operands = Operands::split_half};
  EXPECT_GE(make_oracle(problem)->likely("y", arithmetic)[(6 * 32 + 7) * 18 + 12], 0.01627);
}

/// What bounds are infinite for: tokens without variance, or with almost none beside their mean.
bool may_lack_a_bound(const AxialCase& c) {
  return c.x.family == InputFamily::constant || c.x.family == InputFamily::value ||
         c.x.family == InputFamily::offset || c.D == 1;
}

struct Worst {
  double ratio = 0;
  std::string text;
};

/// |actual - expected| against the proved bound, with and without FMA; the worst ratio is kept.
template <class Scalar>
void compare(const std::string& form, void (*run)(const AxialProblem&, const AxialOutputs<Scalar>&),
             const AxialCase& c, const Problem& problem, const std::vector<long double>& truth,
             const std::vector<double>& bound, std::map<std::string, Worst>& worst) {
  const AxialProblem view = axial_view(problem);
  std::vector<Scalar> y(truth.size());
  run(view, {contiguous_view<Scalar, 4>(y.data(), view.x.shape), std::nullopt});
  for (std::size_t e = 0; e < y.size(); ++e) {
    double value = 0;
    if constexpr (std::is_same_v<Scalar, FusedFloat>)
      value = y[e].value;
    else
      value = y[e];
    const double error = static_cast<double>(std::abs(static_cast<long double>(value) - truth[e]));
    ASSERT_TRUE(error <= bound[e]) << form << " " << problem.case_text << " element " << e;
    if (bound[e] < std::numeric_limits<double>::infinity() && error > worst[form].ratio * bound[e])
      worst[form] = {error / bound[e], print_case(Case(c))};
  }
}

// Hundreds of problems, four forms, with and without FMA: never above 1, and not so far below that the bound
// means nothing. Only families made for it may lack a bound.
TEST(AxialProvedBound, HoldsForEveryFormWithAndWithoutFma) {
  std::map<std::string, Worst> worst;
  Index elements = 0;
  Index unbounded = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    Draw draw(5, i);
    const AxialCase c = draw_axial_case(draw, largest_work);
    const Problem problem = make_problem(Case(c));
    const AxialProblem view = axial_view(problem);
    std::vector<long double> truth(static_cast<std::size_t>(problem.input("x").size()));
    axial::unfused<long double>(view,
                                {contiguous_view<long double, 4>(truth.data(), view.x.shape), std::nullopt});
    for (const Variant* variant : cpu_variants()) {
      if (variant->declines(problem)) continue;
      const std::vector<double> bound = axial_bound(view, variant->arithmetic).y;
      for (const double limit : bound) {
        ++elements;
        if (limit < std::numeric_limits<double>::infinity()) continue;
        ++unbounded;
        ASSERT_TRUE(may_lack_a_bound(c)) << problem.case_text;
      }
      const auto both = [&](auto plain, auto fused) {
        compare<float>(variant->name, plain, c, problem, truth, bound, worst);
        compare<FusedFloat>(variant->name + " with FMA", fused, c, problem, truth, bound, worst);
      };
      if (variant->name == "unfused") both(axial::unfused<float>, axial::unfused<FusedFloat>);
      if (variant->name == "online_softmax")
        both(axial::online_softmax<float>, axial::online_softmax<FusedFloat>);
      if (variant->name == "one_pass_variance")
        both(axial::one_pass_variance<float>, axial::one_pass_variance<FusedFloat>);
      if (variant->name == "fused_sequence")
        both(axial::fused_sequence<float>, axial::fused_sequence<FusedFloat>);
      if (HasFatalFailure()) return;
    }
  }
  for (const auto& [form, found] : worst) {
    std::printf("%-28s worst error/bound %.3f  %s\n", form.c_str(), found.ratio, found.text.c_str());
    EXPECT_GT(found.ratio, 0.01) << form;
  }
  std::printf("%lld of %lld elements without a bound\n", static_cast<long long>(unbounded),
              static_cast<long long>(elements));
  EXPECT_EQ(worst.size(), 8U);
}

// A looser arithmetic never has a smaller bound.
TEST(AxialProvedBound, GrowsWithTheArithmetic) {
  const Problem problem = make_problem(parse_case("axial:B=1,H=5,W=7,D=24,heads=3"));
  const AxialProblem view = axial_view(problem);
  Arithmetic plain;
  plain.form = "unfused";
  plain.exp_error = 1.01;
  Arithmetic any = plain;
  any.form = "any_form";
  Arithmetic online = plain;
  online.form = "online_softmax";
  Arithmetic root = plain;
  root.reciprocal_root = true;
  Arithmetic loose_exp = plain;
  loose_exp.exp_error = 5;
  Arithmetic one_pass = plain;
  one_pass.form = "one_pass_variance";
  const std::vector<double> base = axial_bound(view, plain).y;
  for (const Arithmetic& looser : {online, any, root, loose_exp, one_pass}) {
    const std::vector<double> bound = axial_bound(view, looser).y;
    for (std::size_t e = 0; e < base.size(); ++e) ASSERT_GE(bound[e], base[e]) << arithmetic_text(looser);
  }
}

// A token whose two nearest logits are rounding apart: a sum in another order picks the other value, which none
// of sixteen runs did. There `likely` says no more than the proved bound; elsewhere it says more.
TEST(AxialLikelyLimit, SaysNoMoreThanProvedWhereRoundingDecidesASoftmax) {
  Arithmetic plain;
  plain.form = "unfused";
  plain.exp_error = 1.01;
  const auto sharper = [&](const std::string& text) {
    const Problem problem = make_problem(parse_case(text));
    const auto oracle = make_oracle(problem);
    const std::vector<double>& proved = oracle->proved("y", plain);
    const std::vector<double>& likely = oracle->likely("y", plain);
    std::vector<bool> result;
    for (std::size_t e = 0; e < proved.size(); ++e) result.push_back(likely[e] < proved[e]);
    return result;
  };
  const std::string text =
      "axial:B=2,H=5,W=3,D=5,heads=1,eps=1e-05,passes=row,x=offset,weights=logits_1e5,layout=contiguous,"
      "seed=984305";
  const std::vector<bool> decided = sharper(text);
  const std::size_t token = (1 * 5 + 4) * 3 + 1;
  for (std::size_t c = 0; c < 5; ++c) EXPECT_FALSE(decided[token * 5 + c]) << c;
  // Tokens of equal channels: the values of a softmax differ by the rounding of means alone.
  const std::vector<bool> equal = sharper(
      "axial:B=1,H=149,W=2,D=6,heads=3,eps=0.001,passes=row,x=constant,weights=logits_1e5,layout=contiguous,"
      "seed=1");
  for (std::size_t c = 0; c < 6; ++c) EXPECT_FALSE(equal[54 * 2 * 6 + c]) << c;
  for (const bool element : sharper("axial:B=1,H=5,W=7,D=24,heads=3")) EXPECT_TRUE(element);
}

}  // namespace
}  // namespace gaugeblock
