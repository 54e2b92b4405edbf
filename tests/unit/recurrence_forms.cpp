// Every form is the same function: they agree with the definition to the precision of any scalar.
#include <gtest/gtest.h>

#include <cmath>

#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/reference/recurrence/masked_attention.h"
#include "gaugeblock/reference/recurrence/materialized.h"
#include "gaugeblock/reference/recurrence/prefix_product.h"
#include "gaugeblock/reference/recurrence/prefix_product_segmented.h"
#include "gaugeblock/reference/recurrence/scan.h"
#include "gaugeblock/reference/recurrence/sequential.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {
namespace {

template <class Scalar>
struct Buffers {
  std::vector<Scalar> y, final_state;
  RecurrenceOutputs<Scalar> view;
  explicit Buffers(const RecurrenceProblem& p)
      : y(p.batches() * p.steps() * p.heads() * p.value_size(), Scalar(-1)),
        final_state(p.batches() * p.heads() * p.key_size() * p.value_size(), Scalar(-1)) {
    view.y = contiguous_view<Scalar, 4>(y.data(), {p.batches(), p.steps(), p.heads(), p.value_size()});
    view.final_state = contiguous_view<Scalar, 4>(final_state.data(),
                                                  {p.batches(), p.heads(), p.key_size(), p.value_size()});
  }
};

template <class Scalar>
using FormOf = std::function<void(const RecurrenceProblem&, const RecurrenceOutputs<Scalar>&)>;

template <class Scalar>
std::vector<std::pair<std::string, FormOf<Scalar>>> forms() {
  return {{"materialized", recurrence::materialized<Scalar>},
          {"masked_attention", recurrence::masked_attention<Scalar>},
          {"prefix_product", recurrence::prefix_product<Scalar>},
          {"prefix_product_segmented", recurrence::prefix_product_segmented<Scalar>},
          {"scan", recurrence::scan<Scalar>},
          {"chunked(1)", [](const auto& p, const auto& o) { recurrence::chunked<Scalar>(p, o, 1); }},
          {"chunked(3)", [](const auto& p, const auto& o) { recurrence::chunked<Scalar>(p, o, 3); }},
          {"chunked(16)", [](const auto& p, const auto& o) { recurrence::chunked<Scalar>(p, o, 16); }},
          {"chunked(1000)", [](const auto& p, const auto& o) { recurrence::chunked<Scalar>(p, o, 1000); }}};
}

/// Σ|terms| of each output: what errors are measured by.
Buffers<double> majorant(const RecurrenceProblem& problem) {
  Buffers<double> out(problem);
  for (Index b = 0; b < problem.batches(); ++b)
    for (Index h = 0; h < problem.heads(); ++h) {
      Eigen::MatrixXd state = recurrence::load_initial_state<double>(problem, b, h).cwiseAbs();
      for (Index t = 0; t < problem.steps(); ++t) {
        const auto size = [&](const TensorView<const float, 4>& x) -> Eigen::VectorXd {
          return recurrence::load<double>(x, b, t, h).cwiseAbs();
        };
        state = (std::abs(problem.gate(b, t, h)) * state +
                 std::abs(problem.beta(b, t, h)) * size(problem.k) * size(problem.v).transpose())
                    .eval();
        recurrence::store_output<double>(out.view, b, t, h, state.transpose() * size(problem.q));
      }
      recurrence::store_final_state<double>(out.view, b, h, state);
    }
  return out;
}

template <class Scalar>
void expect_forms_agree(const std::string& text, double tolerance) {
  const Problem problem = make_problem(parse_case(text));
  const RecurrenceProblem view = recurrence_view(problem);
  Buffers<Scalar> wanted(view);
  recurrence::sequential<Scalar>(view, wanted.view);
  const Buffers<double> size = majorant(view);
  for (const auto& [name, form] : forms<Scalar>()) {
    if (name == "prefix_product" && recurrence::prefix_product_declines(view)) continue;
    Buffers<Scalar> actual(view);
    form(view, actual.view);
    for (std::size_t e = 0; e < wanted.y.size(); ++e)
      ASSERT_LE(std::abs(double(actual.y[e] - wanted.y[e])), tolerance * size.y[e])
          << name << " y " << e << " " << text;
    for (std::size_t e = 0; e < wanted.final_state.size(); ++e)
      ASSERT_LE(std::abs(double(actual.final_state[e] - wanted.final_state[e])),
                tolerance * size.final_state[e])
          << name << " final_state " << e << " " << text;
  }
}

const std::vector<std::string> cases{
    "recurrence:B=2,T=37,H=2,K=5,V=3,gate=uniform,beta=uniform,qkv=normal,state=writes,seed=1",
    "recurrence:B=1,T=33,H=1,K=3,V=7,gate=near_one,beta=normal,qkv=normal,state=none,layout=permuted,seed=2",
    "recurrence:B=1,T=40,H=2,K=4,V=4,gate=zeros,beta=unit,qkv=normal,state=writes,layout=padded,seed=3",
    "recurrence:B=1,T=64,H=1,K=2,V=2,gate=alternating,beta=unit,qkv=integers,state=writes,layout=broadcast,"
    "seed=4",
    "recurrence:B=1,T=17,H=1,K=4,V=4,gate=tiny,beta=uniform,qkv=normal,state=writes,seed=5",
    "recurrence:B=1,T=9,H=1,K=1,V=1,gate=negative,beta=uniform,qkv=normal,state=none,seed=6",
    "recurrence:B=2,T=0,H=3,K=4,V=2,gate=uniform,beta=uniform,qkv=normal,state=writes,seed=7",
    "recurrence:B=1,T=20,H=1,K=4,V=4,gate=reset:4:0.9,beta=uniform,qkv=normal,state=writes,seed=8"};

// The tolerances: unit roundoff of the scalar times the largest rounding count of these sizes (3T + K + 4 <
// 210).
TEST(RecurrenceForms, AgreeInFloat) {
  for (const std::string& text : cases)
    if (text.find("gate=tiny") == std::string::npos)  // float32 underflows there, the others do not
      expect_forms_agree<float>(text, 420 * 0x1p-24);
}
TEST(RecurrenceForms, AgreeInDouble) {
  for (const std::string& text : cases) expect_forms_agree<double>(text, 420 * 0x1p-53);
}
TEST(RecurrenceForms, AgreeInLongDouble) {
  for (const std::string& text : cases) expect_forms_agree<long double>(text, 420 * 0x1p-53);
}

TEST(RecurrenceForms, TwoStepsByHand) {
  // K = 1, V = 2: S_0 = [2 4], gates 0.5 and 3, beta 1 and 2, k 1 and 5, v [1 0] and [2 1], q 10 and 1.
  //   S_1 = 0.5·[2 4] + 1·1·[1 0] = [2 2]     y_1 = 10·[2 2] = [20 20]
  //   S_2 = 3·[2 2] + 2·5·[2 1]   = [26 16]   y_2 = [26 16]
  const std::vector<float> q{10, 1}, k{1, 5}, v{1, 0, 2, 1}, gate{0.5F, 3}, beta{1, 2}, initial{2, 4};
  RecurrenceProblem problem;
  problem.q = contiguous_view<const float, 4>(q.data(), {1, 2, 1, 1});
  problem.k = contiguous_view<const float, 4>(k.data(), {1, 2, 1, 1});
  problem.v = contiguous_view<const float, 4>(v.data(), {1, 2, 1, 2});
  problem.gate = contiguous_view<const float, 3>(gate.data(), {1, 2, 1});
  problem.beta = contiguous_view<const float, 3>(beta.data(), {1, 2, 1});
  problem.initial_state = contiguous_view<const float, 4>(initial.data(), {1, 1, 1, 2});
  auto all = forms<float>();
  all.emplace_back("sequential", recurrence::sequential<float>);
  for (const auto& [name, form] : all) {
    Buffers<float> out(problem);
    form(problem, out.view);
    EXPECT_EQ(out.y, (std::vector<float>{20, 20, 26, 16})) << name;
    EXPECT_EQ(out.final_state, (std::vector<float>{26, 16})) << name;
  }
}

// Without an initial state the product of all gates up to t has nothing to weigh, and may be infinite.
TEST(RecurrenceForms, MaskedAttentionWithoutAStateNeedsNoProductOfAllGates) {
  const std::vector<float> ones{1, 1}, gate{0x1p100F, 0x1p100F};
  RecurrenceProblem problem;
  problem.q = problem.k = problem.v = contiguous_view<const float, 4>(ones.data(), {1, 2, 1, 1});
  problem.gate = contiguous_view<const float, 3>(gate.data(), {1, 2, 1});
  problem.beta = contiguous_view<const float, 3>(ones.data(), {1, 2, 1});
  Buffers<float> out(problem);
  recurrence::masked_attention<float>(problem, out.view);
  EXPECT_EQ(out.y, (std::vector<float>{1, 0x1p100F}));
  EXPECT_EQ(out.final_state, std::vector<float>{0x1p100F});
}

TEST(PrefixProduct, DeclinesOutsideItsRange) {
  const auto declines = [](const std::string& text) {
    const Problem problem = make_problem(parse_case(text));
    return recurrence::prefix_product_declines(recurrence_view(problem)).value_or("");
  };
  // 2^125 is the last product of twos within range; of halves the writes / P pass 2^120 before P leaves.
  EXPECT_EQ(declines("recurrence:B=1,T=125,H=1,K=1,V=1,gate=const:2,beta=unit,qkv=normal,seed=1"), "");
  EXPECT_NE(
      declines("recurrence:B=1,T=126,H=1,K=1,V=1,gate=const:2,beta=unit,qkv=normal,seed=1").find("t=125"),
      std::string::npos);
  EXPECT_EQ(declines("recurrence:B=1,T=110,H=1,K=1,V=1,gate=const:0.5,beta=unit,qkv=normal,seed=1"), "");
  EXPECT_NE(declines("recurrence:B=1,T=122,H=1,K=1,V=1,gate=const:0.5,beta=unit,qkv=normal,seed=1"), "");
  EXPECT_NE(declines("recurrence:B=1,T=3,H=1,K=1,V=1,gate=const:0,beta=unit,qkv=normal,seed=1"), "");
  EXPECT_EQ(declines("recurrence:B=1,T=300,H=1,K=1,V=1,gate=one,beta=unit,qkv=normal,seed=1"), "");
}

/// |beta_t| max(1, |k_t|) max(1, |v_t|) and Σ|q_t| of step t, as prefix_range.h defines them.
struct StepSizes {
  double write = 0, query = 0;
  StepSizes(const RecurrenceProblem& p, Index b, Index t, Index h) {
    const auto values = [&](const TensorView<const float, 4>& tensor) {
      return recurrence::load<double>(tensor, b, t, h).cwiseAbs().eval();
    };
    write = std::abs(p.beta(b, t, h)) * std::max(1.0, values(p.k).maxCoeff()) *
            std::max(1.0, values(p.v).maxCoeff());
    query = std::max(1.0, values(p.q).sum());
  }
};

TEST(PrefixRange, FollowsItsDefinition) {
  const Problem problem = make_problem(parse_case(
      "recurrence:B=2,T=9,H=3,K=4,V=3,gate=negative,beta=normal,state=writes,layout=permuted,seed=1"));
  const RecurrenceProblem view = recurrence_view(problem);
  for (Index b = 0; b < view.batches(); ++b)
    for (Index h = 0; h < view.heads(); ++h) {
      recurrence::PrefixRange range(view, b, h);
      double product = 1, size = recurrence::load_initial_state<double>(view, b, h).cwiseAbs().maxCoeff();
      for (Index t = 0; t < view.steps(); ++t) {
        const StepSizes step(view, b, t, h);
        const double gate = std::abs(view.gate(b, t, h));
        if (t == 5 || t == 7) {  // a new segment: its initial state is P · W
          range.restart();
          size *= product;
          product = 1;
        }
        if (t == 7) {  // a step as the definition has it
          range.step(t);
          size = size * gate + step.write;
          continue;
        }
        range.advance(t);
        product *= gate;
        size += step.write / product;
        EXPECT_NEAR(range.largest() / (size * step.query), 1, 1e-12) << b << "," << h << "," << t;
        EXPECT_TRUE(range.inside());
      }
    }
}

TEST(PrefixRange, EndsWhereItsFormulasSay) {
  // K = V = 1, gates 1, so that W = |S_0| + Σ beta; k and v below 1 count as 1.
  const auto declines = [](float beta, float q, float state) {
    const std::vector<float> qs(3, q), half(3, 0.5F), gates(3, 1), betas(3, beta);
    RecurrenceProblem problem;
    problem.q = contiguous_view<const float, 4>(qs.data(), {1, 3, 1, 1});
    problem.k = problem.v = contiguous_view<const float, 4>(half.data(), {1, 3, 1, 1});
    problem.gate = contiguous_view<const float, 3>(gates.data(), {1, 3, 1});
    problem.beta = contiguous_view<const float, 3>(betas.data(), {1, 3, 1});
    problem.initial_state = contiguous_view<const float, 4>(&state, {1, 1, 1, 1});
    const std::string reason = recurrence::prefix_product_declines(problem).value_or("");
    const std::size_t at = reason.find("t=");
    return at == std::string::npos ? reason : reason.substr(at, 3);
  };
  EXPECT_EQ(declines(0x1p118F, 1, 0), "");  // W = 3 · 2^118 after the last step
  EXPECT_EQ(declines(0x1p118F, 1, 0x1p118F), "t=2");
  EXPECT_EQ(declines(0x1p119F, 1, 0), "t=1");  // W = 2^120
  EXPECT_EQ(declines(-0x1p119F, 1, 0), "t=1");
  EXPECT_EQ(declines(0x1p118F, 0x1p6F, 0), "");  // q W = 3 · 2^124
  EXPECT_EQ(declines(0x1p118F, 0x1p7F, 0), "t=1");
  EXPECT_EQ(declines(0, -0x1p10F, 0x1p117F), "t=0");
}

// Inputs of a few bytes, whose states of one head are 2^50 floats.
TEST(RecurrenceForms, WhoeverKeepsEveryStateDeclinesWhatMemoryDoesNotHold) {
  constexpr Index steps = Index{1} << 20, size = Index{1} << 15;
  const auto repeated = [](std::vector<Index> shape) {
    return Tensor::strided(shape, std::vector<Index>(shape.size(), 0));
  };
  Problem problem;
  for (const char* const name : {"q", "k", "v"}) problem.inputs.emplace(name, repeated({1, steps, 1, size}));
  for (const char* const name : {"gate", "beta"}) problem.inputs.emplace(name, repeated({1, steps, 1}));
  for (const Variant& variant : select_variants(Operation::recurrence, "*", "cpu")) {
    if (variant.name == "prefix_product") continue;  // looks at the gates, which are poison here
    const bool keeps_states = variant.name == "materialized" || variant.name == "scan";
    const std::string reason = variant.declines(problem).value_or("");
    EXPECT_EQ(reason.find("states of one head") == 0, keeps_states) << variant.name << ": " << reason;
    EXPECT_EQ(reason.empty(), !keeps_states) << variant.name << ": " << reason;
  }
}

}  // namespace
}  // namespace gaugeblock
