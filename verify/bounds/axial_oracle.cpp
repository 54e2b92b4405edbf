#include "gaugeblock/verify/bounds/axial_oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "gaugeblock/verify/bounds/axial_bound.h"
#include "gaugeblock/verify/bounds/axial_claims.h"
#include "gaugeblock/verify/bounds/axial_forms.h"
#include "gaugeblock/verify/bounds/column_oracle.h"
#include "gaugeblock/verify/bounds/fused_float.h"
#include "gaugeblock/verify/bounds/likely.h"
#include "gaugeblock/verify/bounds/split_operands.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest_float = std::numeric_limits<float>::max();
// Multiply-adds up to which the truth is computed in high precision; long double is exact enough beyond.
constexpr double high_precision_work = 50000;
// Elements that a pool of the likely limit should have. No more: the errors of a token's channels go together
// (they share a mean and a root), those of two tokens do not, so that neighbours would hide a token with a
// large error.
constexpr Index smallest_pool = 8;

double work(const AxialProblem& problem) {
  const auto [B, H, W, D] = problem.x.shape;
  const auto width = static_cast<double>(D);
  const double tokens = static_cast<double>(B) * static_cast<double>(H) * static_cast<double>(W);
  const auto of_pass = [&](Index L) {
    return tokens * (4 * width * width + 2 * static_cast<double>(L) * width);
  };
  return (problem.passes == AxialPasses::col ? 0 : of_pass(W)) +
         (problem.passes == AxialPasses::row ? 0 : of_pass(H));
}

/// The view with its last `dimensions` dimensions traversed backwards.
template <class T, int Rank>
TensorView<T, Rank> reversed(TensorView<T, Rank> view, int dimensions) {
  for (int dimension = Rank - dimensions; dimension < Rank; ++dimension) {
    view.data += (view.shape[dimension] - 1) * view.stride[dimension];
    view.stride[dimension] = -view.stride[dimension];
  }
  return view;
}

/// The same problem with tokens and channels backwards, so that every sum of every form runs in the other
/// order.
class MirroredProblem {
 public:
  explicit MirroredProblem(const AxialProblem& problem) : view(problem) {
    view.x = reversed(problem.x, 3);
    if (problem.passes != AxialPasses::col) mirror(view.row, qkv_[0]);
    if (problem.passes != AxialPasses::row) mirror(view.col, qkv_[1]);
  }
  MirroredProblem(const MirroredProblem&) = delete;
  MirroredProblem& operator=(const MirroredProblem&) = delete;

  AxialProblem view;

  template <class Scalar>
  static AxialOutputs<Scalar> mirrored(AxialOutputs<Scalar> out) {
    out.y = reversed(out.y, 3);
    if (out.row) out.row = reversed(*out.row, 3);
    return out;
  }

 private:
  static void mirror(AxialPassParameters& parameters, std::vector<float>& qkv) {
    parameters.norm_weight = reversed(parameters.norm_weight, 1);
    parameters.norm_bias = reversed(parameters.norm_bias, 1);
    parameters.out_weight = reversed(parameters.out_weight, 2);
    parameters.out_bias = reversed(parameters.out_bias, 1);
    // Q, K and V stay in order, so this one is no view.
    const TensorView<const float, 2> original = parameters.qkv_weight;
    const Index D = original.shape[1];
    for (Index o = 0; o < 3 * D; ++o)
      for (Index i = D - 1; i >= 0; --i) qkv.push_back(original(o / D * D + D - 1 - o % D, i));
    parameters.qkv_weight = contiguous_view<const float, 2>(qkv.data(), original.shape);
  }

  std::array<std::vector<float>, 2> qkv_;
};

class AxialOracle final : public Oracle {
 public:
  AxialOracle(const Problem& problem, Truth truth)
      : view_(axial_view(problem)), case_text_(problem.case_text) {
    expected_ = axial_truth(view_, truth == Truth::high_precision || work(view_) <= high_precision_work);
  }

  const std::vector<double>& expected(const std::string& output) override { return expected_.at(output); }

  const std::vector<double>& proved(const std::string& output, const Arithmetic& arithmetic) override {
    const Arithmetic model = canonical(arithmetic);
    if (!proved_.contains({output, model})) compute_proved(model);
    return proved_.at({output, model});
  }

  std::vector<std::string> claims_about(const std::string&, const Arithmetic& arithmetic) const override {
    if (arithmetic.operands == Operands::split_half) return {"axial.split_half"};
    return {arithmetic.form == "any_form" ? "axial.any_form" : "axial.block"};
  }

  std::vector<double> proved_by(const std::string& claim, const std::string& output,
                                const Arithmetic& arithmetic) override {
    if (claim != claims_about(output, arithmetic).front())
      throw std::logic_error("claim '" + claim + "' has no bound of " + output + " for " +
                             arithmetic_text(arithmetic));
    return proved(output, arithmetic);
  }

  const std::vector<double>& likely(const std::string& output, const Arithmetic& arithmetic) override {
    const Arithmetic model = canonical(arithmetic);
    if (!likely_.contains({output, model})) compute_likely(model);
    return likely_.at({output, model});
  }

 private:
  using Key = std::pair<std::string, Arithmetic>;
  using Values = std::map<std::string, std::vector<double>>;

  /// fused_sequence performs the operations of the definition; only the order of its sums differs.
  static Arithmetic canonical(Arithmetic arithmetic) {
    if (arithmetic.form == "fused_sequence") arithmetic.form = "unfused";
    return arithmetic;
  }

  template <class Scalar>
  static Values values(const AxialBuffers<Scalar>& buffers) {
    const auto doubles = [](const std::vector<Scalar>& numbers) {
      std::vector<double> result;
      result.reserve(numbers.size());
      for (const Scalar& number : numbers) {
        if constexpr (std::is_same_v<Scalar, FusedFloat>)
          result.push_back(double(number.value));
        else
          result.push_back(static_cast<double>(number));
      }
      return result;
    };
    Values result{{"y", doubles(buffers.y)}};
    if (!buffers.row.empty()) result["row"] = doubles(buffers.row);
    return result;
  }

  void compute_proved(const Arithmetic& arithmetic) {
    AxialBound bound = axial_bound(view_, arithmetic);
    for (const auto& [output, truth] : expected_) {
      std::vector<double>& limit = proved_[{output, arithmetic}] = output == "y" ? bound.y : bound.row;
      for (std::size_t e = 0; e < limit.size(); ++e) {
        // axial_bound() allows for the error of the truth; its rounding to float64 comes on top.
        limit[e] += std::abs(truth[e]) * 0x1p-53;
        if (!(std::abs(truth[e]) <= largest_float)) limit[e] = infinity;
      }
      unsteady_[{output, arithmetic}] = output == "y" ? bound.y_unsteady : bound.row_unsteady;
    }
  }

  /// Errors of one plain float32 run, by output.
  template <class Scalar>
  Values plain_errors(const std::string& form, const AxialProblem& problem, bool mirrored) {
    AxialBuffers<Scalar> buffers(view_);
    run_axial_form(form, problem, mirrored ? MirroredProblem::mirrored(buffers.view) : buffers.view);
    Values errors = values(buffers);
    for (auto& [output, error] : errors)
      for (std::size_t e = 0; e < error.size(); ++e) error[e] -= expected_.at(output)[e];
    return errors;
  }

  void compute_likely(const Arithmetic& arithmetic) {
    if (arithmetic.form == "any_form") return compute_likely_any_form(arithmetic);
    AxialBuffers<MonteCarlo> buffers(view_);
    MonteCarlo::seed(fnv1a(case_text_ + arithmetic.form));
    MonteCarlo::exp_error() = std::max(1.0, arithmetic.exp_error);
    if (arithmetic.operands == Operands::split_half)
      MonteCarlo::product_error() = claims::split_product_spread;
    run_axial_form(arithmetic.form, view_, buffers.view);
    MonteCarlo::product_error() = 1;

    const MirroredProblem mirror(view_);
    std::vector<std::string> forms{arithmetic.form};
    if (arithmetic.form == "unfused") forms.emplace_back("fused_sequence");  // yet another order of every sum
    std::vector<Values> plain;
    for (const std::string& form : forms) {
      plain.push_back(plain_errors<float>(form, view_, false));
      plain.push_back(plain_errors<float>(form, mirror.view, true));
      plain.push_back(plain_errors<FusedFloat>(form, view_, false));
      plain.push_back(plain_errors<FusedFloat>(form, mirror.view, true));
    }

    for (const auto& [output, truth] : expected_) {
      std::vector<std::vector<double>> errors;
      for (Values& run : plain) errors.push_back(std::move(run.at(output)));
      const std::vector<MonteCarlo>& actual = output == "y" ? buffers.y : buffers.row;
      std::vector<double>& limit = likely_[{output, arithmetic}] =
          likely_limit(truth, mean_square_deviation(actual, truth), errors, pooling(output, arithmetic));
      // Whether a softmax takes one value or another, a few runs may all miss: there the proved bound is all
      // that can be said.
      const std::vector<double>& proved_limit = proved(output, arithmetic);
      const std::vector<bool>& unsteady = unsteady_.at({output, arithmetic});
      const std::size_t D = limit.size() / unsteady.size();
      for (std::size_t e = 0; e < limit.size(); ++e)
        if (unsteady[e / D]) limit[e] = std::max(limit[e], proved_limit[e]);
    }
  }

  /// A token is pooled with itself, and with its neighbours where it alone has few channels. Elements are
  /// made comparable by their proved bounds, where all have one.
  Pooling pooling(const std::string& output, const Arithmetic& arithmetic) {
    const auto [B, H, W, D] = view_.x.shape;
    Pooling result{D, 1, (smallest_pool / D) / 2, H * W, proved(output, arithmetic)};
    for (const double scale : result.scale)
      if (!std::isfinite(scale)) {
        result.scale.clear();
        break;
      }
    return result;
  }

  /// An implementation of unknown form may be as good as the worst of the forms without a restricted domain.
  void compute_likely_any_form(const Arithmetic& arithmetic) {
    for (const auto& [output, truth] : expected_) {
      std::vector<double> limit(truth.size(), 0);
      for (const std::string form : {"unfused", "online_softmax"}) {
        Arithmetic one = arithmetic;
        one.form = form;
        if (one.exp_error == 0) one.exp_error = claims::unknown_exp_error;
        const std::vector<double>& other = likely(output, one);
        for (std::size_t e = 0; e < limit.size(); ++e) limit[e] = std::max(limit[e], other[e]);
      }
      likely_[{output, arithmetic}] = std::move(limit);
    }
  }

  AxialProblem view_;
  std::string case_text_;
  Values expected_;
  std::map<Key, std::vector<double>> proved_;
  std::map<Key, std::vector<bool>> unsteady_;  // by token
  std::map<Key, std::vector<double>> likely_;
};

/// An oracle together with the problem that it is about.
class ColumnOracle final : public Oracle {
 public:
  explicit ColumnOracle(Problem problem)
      : problem_(std::move(problem)), oracle_(make_axial_oracle(problem_, Truth::automatic)) {}

  const std::vector<double>& expected(const std::string& output) override {
    return oracle_->expected(output);
  }
  const std::vector<double>& proved(const std::string& output, const Arithmetic& arithmetic) override {
    return oracle_->proved(output, arithmetic);
  }
  std::vector<std::string> claims_about(const std::string& output,
                                        const Arithmetic& arithmetic) const override {
    return oracle_->claims_about(output, arithmetic);
  }
  std::vector<double> proved_by(const std::string& claim, const std::string& output,
                                const Arithmetic& arithmetic) override {
    return oracle_->proved_by(claim, output, arithmetic);
  }
  const std::vector<double>& likely(const std::string& output, const Arithmetic& arithmetic) override {
    return oracle_->likely(output, arithmetic);
  }

 private:
  Problem problem_;
  std::unique_ptr<Oracle> oracle_;
};

}  // namespace

std::unique_ptr<Oracle> make_axial_oracle(const Problem& problem, Truth truth) {
  return std::make_unique<AxialOracle>(problem, truth);
}

std::unique_ptr<Oracle> make_column_oracle(const Problem& problem, const Tensor& row) {
  Problem column = problem;
  column.attributes.passes = AxialPasses::col;
  column.case_text = problem.case_text + " column pass";
  std::erase_if(column.inputs, [](const auto& input) { return input.first.starts_with("row_"); });
  column.inputs.at("x") = row;
  return std::make_unique<ColumnOracle>(std::move(column));
}

}  // namespace gaugeblock
