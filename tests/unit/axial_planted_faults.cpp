// Deliberately wrong axial blocks, each caught by the bounds on one small problem that shows it.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "gaugeblock/reference/axial/passes.h"
#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {
namespace {

enum class Fault {
  none,
  no_max_subtraction,
  no_scale,
  eps_outside_root,
  eps_dropped,
  divisor_n_minus_1,
  last_channel_missing_in_variance,
  one_pass_variance_anywhere,
  norm_bias_dropped,
  q_and_k_swapped,
  heads_merged_in_wrong_order,
  columns_read_as_rows,
  residual_from_the_wrong_pass,
  out_bias_dropped,
  zeros,
  zero_update,
  mean_of_v,
  last_key_dropped,
  online_without_rescaling,
  finite_sentinel,
};

using Matrix = axial::Matrix<float>;
using Vector = axial::RowVector<float>;

Matrix norm(const Matrix& x, const axial::Weights<float>& weights, float eps, Fault fault) {
  const Index D = x.cols();
  Matrix n(x.rows(), D);
  for (Index t = 0; t < x.rows(); ++t) {
    const float mean = x.row(t).sum() / float(D);
    const Vector centred = (x.row(t).array() - mean).matrix();
    const Index counted = fault == Fault::last_channel_missing_in_variance ? D - 1 : D;
    float variance =
        centred.head(counted).squaredNorm() / float(fault == Fault::divisor_n_minus_1 ? D - 1 : D);
    if (fault == Fault::one_pass_variance_anywhere)
      variance = x.row(t).squaredNorm() / float(D) - mean * mean;
    float root = std::sqrt(variance + eps);
    if (fault == Fault::eps_outside_root) root = std::sqrt(variance) + eps;
    if (fault == Fault::eps_dropped) root = std::sqrt(variance);
    n.row(t) = (centred / root).cwiseProduct(weights.norm_weight);
    if (fault != Fault::norm_bias_dropped) n.row(t) += weights.norm_bias;
  }
  return n;
}

Matrix attention(const Matrix& Q, const Matrix& K, const Matrix& V, Fault fault) {
  const float scale = fault == Fault::no_scale ? 1.0F : 1 / std::sqrt(float(Q.cols()));
  const Index keys = fault == Fault::last_key_dropped && K.rows() > 1 ? K.rows() - 1 : K.rows();
  Matrix o(Q.rows(), V.cols());
  for (Index query = 0; query < Q.rows(); ++query) {
    Vector score = Q.row(query) * K.topRows(keys).transpose() * scale;
    if (fault == Fault::mean_of_v) score.setZero();
    if (fault == Fault::online_without_rescaling) {
      float largest = score(0), sum = 1;
      Vector total = V.row(0);
      for (Index key = 1; key < keys; ++key) {
        largest = std::max(largest, score(key));
        const float weight = std::exp(score(key) - largest);
        sum += weight;
        total += weight * V.row(key);
      }
      o.row(query) = total / sum;
      continue;
    }
    float largest = score.maxCoeff();
    if (fault == Fault::no_max_subtraction) largest = 0;
    if (fault == Fault::finite_sentinel) largest = std::max(largest, -5e4F);
    for (Index key = 0; key < keys; ++key) score(key) = std::exp(score(key) - largest);
    o.row(query) = score * V.topRows(keys) / score.sum();
  }
  return o;
}

Matrix pass(const Matrix& x, const axial::Weights<float>& weights, const AxialProblem& problem, Fault fault) {
  const Index D = x.cols();
  const Index heads = problem.heads;
  const Index d = D / heads;
  const Matrix n = norm(x, weights, problem.eps, fault);
  Matrix qkv = n * weights.qkv.transpose();
  if (fault == Fault::q_and_k_swapped) {
    const Matrix q = qkv.leftCols(D);
    qkv.leftCols(D) = qkv.middleCols(D, D).eval();
    qkv.middleCols(D, D) = q;
  }
  Matrix o(x.rows(), D);
  for (Index head = 0; head < heads; ++head) {
    const Matrix of_head = attention(qkv.middleCols(head * d, d), qkv.middleCols(D + head * d, d),
                                     qkv.middleCols(2 * D + head * d, d), fault);
    for (Index i = 0; i < d; ++i)
      o.col(fault == Fault::heads_merged_in_wrong_order ? i * heads + head : head * d + i) = of_head.col(i);
  }
  Matrix projected = o * weights.out.transpose();
  if (fault != Fault::out_bias_dropped) projected.rowwise() += weights.out_bias;
  if (fault == Fault::zero_update) projected.setZero();
  return x + projected;
}

void run(const AxialProblem& problem, const AxialOutputs<float>& out, Fault fault) {
  const Matrix input = axial::load<float>(problem.x);
  Matrix tokens = input;
  for (const bool along_rows : {true, false}) {
    if (problem.passes == (along_rows ? AxialPasses::col : AxialPasses::row)) continue;
    const axial::Weights<float> weights = axial::load<float>(along_rows ? problem.row : problem.col);
    AxialProblem seen = problem;
    // A reshape instead of a transpose: the buffer is taken for one with H and W exchanged.
    if (fault == Fault::columns_read_as_rows) std::swap(seen.x.shape[1], seen.x.shape[2]);
    const axial::Sequences sequences(seen, along_rows);
    Matrix result(tokens.rows(), tokens.cols());
    for (Index s = 0; s < sequences.count(); ++s) {
      const auto rows = Eigen::seqN(sequences[s].first, sequences[s].length, sequences[s].step);
      const Matrix x = tokens(rows, Eigen::all);
      result(rows, Eigen::all) = pass(x, weights, problem, fault);
    }
    if (fault == Fault::residual_from_the_wrong_pass && !along_rows) result += input - tokens;
    tokens = result;
  }
  if (fault == Fault::zeros) tokens.setZero();
  axial::store(tokens, out.y);
}

struct Planted {
  Fault fault;
  std::string name;
  std::string shown_by;  ///< the case that shows it, and why that one
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) {
  return out << planted.name;
}

const std::vector<Planted>& planted_faults() {
  static const std::vector<Planted> faults{
      // exp(200) overflows
      {Fault::no_max_subtraction, "no_max_subtraction", "axial:B=1,H=3,W=8,D=16,heads=2,weights=logits_200"},
      {Fault::no_scale, "no_scale", "axial:B=1,H=3,W=4,D=16,heads=2"},
      // a variance of 1e-6, below eps
      {Fault::eps_outside_root, "eps_outside_root", "axial:B=1,H=2,W=3,D=8,heads=2,x=small"},
      {Fault::eps_dropped, "eps_dropped", "axial:B=1,H=2,W=3,D=8,heads=2,x=small"},
      {Fault::divisor_n_minus_1, "divisor_n_minus_1", "axial:B=1,H=2,W=3,D=24,heads=2"},
      {Fault::last_channel_missing_in_variance, "last_channel_missing_in_variance",
       "axial:B=1,H=2,W=3,D=24,heads=2"},
      // a mean of 1e3 and a spread of 1e-2
      {Fault::one_pass_variance_anywhere, "one_pass_variance_anywhere",
       "axial:B=1,H=2,W=3,D=24,heads=2,x=offset"},
      {Fault::norm_bias_dropped, "norm_bias_dropped", "axial:B=1,H=2,W=3,D=8,heads=2"},
      {Fault::q_and_k_swapped, "q_and_k_swapped", "axial:B=1,H=3,W=4,D=8,heads=2"},
      // two heads at least, and as many channels
      {Fault::heads_merged_in_wrong_order, "heads_merged_in_wrong_order",
       "axial:B=1,H=3,W=4,D=8,heads=2,weights=heads"},
      // H ≠ W
      {Fault::columns_read_as_rows, "columns_read_as_rows",
       "axial:B=1,H=2,W=3,D=8,heads=2,x=index,passes=col"},
      {Fault::residual_from_the_wrong_pass, "residual_from_the_wrong_pass", "axial:B=1,H=2,W=3,D=8,heads=2"},
      {Fault::out_bias_dropped, "out_bias_dropped", "axial:B=1,H=2,W=3,D=8,heads=2"},
      {Fault::zeros, "zeros", "axial:B=1,H=2,W=3,D=8,heads=2"},
      // x far larger than what a pass adds hides nothing
      {Fault::zero_update, "zero_update", "axial:B=1,H=2,W=3,D=8,heads=2,x=large"},
      {Fault::mean_of_v, "mean_of_v", "axial:B=1,H=3,W=4,D=8,heads=2"},
      {Fault::last_key_dropped, "last_key_dropped", "axial:B=1,H=3,W=4,D=8,heads=2"},
      // the maximum changes after the first key in some query
      {Fault::online_without_rescaling, "online_without_rescaling", "axial:B=1,H=3,W=6,D=8,heads=2"},
      // every logit below the sentinel
      {Fault::finite_sentinel, "finite_sentinel", "axial:B=1,H=3,W=4,D=16,heads=2,weights=logits_1e5"},
  };
  return faults;
}

Arithmetic two_pass() {
  Arithmetic arithmetic;
  arithmetic.form = "unfused";
  arithmetic.exp_error = 1.01;
  return arithmetic;
}

Verdict judge(const Problem& problem, Oracle& oracle, Fault fault, Limits limits) {
  Outputs outputs = make_outputs(problem);
  run(axial_view(problem), axial_view(outputs), fault);
  return judge_outputs(problem, oracle, outputs, two_pass(), limits);
}

class AxialPlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(AxialPlantedFault, IsCaught) {
  const Problem problem = make_problem(parse_case(GetParam().shown_by));
  const std::unique_ptr<Oracle> oracle = make_oracle(problem);
  ASSERT_EQ(judge(problem, *oracle, Fault::none, Limits::proved_and_likely).outcome, Outcome::pass);
  const Verdict verdict = judge(problem, *oracle, GetParam().fault, Limits::proved_and_likely);
  EXPECT_TRUE(verdict.outcome == Outcome::fail || verdict.outcome == Outcome::suspect);
  std::printf("%-34s %s, %.3g of the proved bound, %.3g of the likely limit\n", GetParam().name.c_str(),
              std::string(name(verdict.outcome)).c_str(), verdict.worst_ratio, verdict.worst_likely_ratio);
}

INSTANTIATE_TEST_SUITE_P(All, AxialPlantedFault, testing::ValuesIn(planted_faults()),
                         [](const testing::TestParamInfo<Planted>& info) { return info.param.name; });

// The proved bound alone is tight enough for every structural fault at the quoted size, for one pass and even
// for both at once.
class AxialQuotedSize : public testing::TestWithParam<std::string> {};

TEST_P(AxialQuotedSize, StructuralFaultsExceedTheProvedBound) {
  const Problem problem = make_problem(parse_case("axial:B=4,H=32,W=32,D=64,heads=4,passes=" + GetParam()));
  const std::unique_ptr<Oracle> oracle = make_oracle(problem);
  EXPECT_EQ(judge(problem, *oracle, Fault::none, Limits::proved_only).outcome, Outcome::pass);
  for (const Planted& planted : planted_faults()) {
    switch (planted.fault) {
      case Fault::no_scale:
      case Fault::q_and_k_swapped:
      case Fault::heads_merged_in_wrong_order:
      case Fault::zeros:
      case Fault::zero_update:
      case Fault::mean_of_v:
      case Fault::last_key_dropped:
      case Fault::online_without_rescaling:
      case Fault::out_bias_dropped:
      case Fault::norm_bias_dropped: {
        const Verdict verdict = judge(problem, *oracle, planted.fault, Limits::proved_only);
        EXPECT_EQ(verdict.outcome, Outcome::fail) << planted.name;
        std::printf("%-5s %-34s %.3g of the proved bound\n", GetParam().c_str(), planted.name.c_str(),
                    verdict.worst_ratio);
        break;
      }
      default:
        break;
    }
  }
  // With H = W a reshape does nothing; the axes exchanged are the other pass.
  Problem other = problem;
  std::swap(other.inputs.at("x").shape[1], other.inputs.at("x").shape[2]);
  std::swap(other.inputs.at("x").stride[1], other.inputs.at("x").stride[2]);
  Outputs outputs = make_outputs(other);
  run(axial_view(other), axial_view(outputs), Fault::none);
  std::swap(outputs.at("y").stride[1], outputs.at("y").stride[2]);
  const Verdict verdict = judge_outputs(problem, *oracle, outputs, two_pass(), Limits::proved_only);
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  std::printf("%-5s %-34s %.3g of the proved bound\n", GetParam().c_str(), "axes exchanged",
              verdict.worst_ratio);
}

INSTANTIATE_TEST_SUITE_P(All, AxialQuotedSize, testing::Values("row", "both"),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace gaugeblock
