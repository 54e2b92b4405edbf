#include "checkers.h"

#include <cmath>

#include "gaugeblock/reference/axial/passes.h"
#include "gaugeblock/reference/recurrence/problem.h"
#include "rounding.h"

namespace gaugeblock {
namespace {

/// torch.allclose and torch.testing.assert_close: |actual - expected| <= atol + rtol · |expected|.
bool all_close(const Seen& seen, double rtol, double atol) {
  for (std::size_t e = 0; e < seen.actual.size(); ++e) {
    const double actual = seen.actual[e], expected = seen.expected[e];
    if (actual == expected) continue;  // infinities too
    if (!(std::abs(actual - expected) <= atol + rtol * std::abs(expected))) return false;
  }
  return true;
}

/// sqrt(mean (actual - expected)²) / sqrt(mean expected²) below `ratio`, or every error below 1e-6.
bool rms_ratio_below(const Seen& seen, double ratio) {
  if (largest_error(seen.actual, seen.expected) <= 1e-6) return true;
  double errors = 0, squares = 0;
  for (std::size_t e = 0; e < seen.actual.size(); ++e) {
    errors += std::pow(double(seen.actual[e]) - seen.expected[e], 2);
    squares += seen.expected[e] * seen.expected[e];
  }
  const double count = static_cast<double>(seen.actual.size());
  return std::sqrt(errors / count) / (std::sqrt(squares / count) + 1e-8) < ratio;
}

bool error_at_most(const Seen& seen, double limit) {
  return seen.actual.empty() || largest_error(seen.actual, seen.expected) <= limit;
}

constexpr int bits = 8;  // of bfloat16

}  // namespace

double largest_error(const std::vector<float>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t e = 0; e < actual.size(); ++e) {
    const double error = std::abs(double(actual[e]) - expected[e]);
    if (!(error <= largest)) largest = error;
    if (std::isnan(largest)) break;
  }
  return largest;
}

const std::vector<Checker>& other_checkers() {
  static const std::vector<Checker> checkers{
      {"allclose 1e-2", "KernelBench (arXiv:2502.10517): torch.allclose, atol = rtol = 1e-2, 5 random trials",
       [](const Seen& seen) { return all_close(seen, 1e-2, 1e-2); }},
      {"allclose 1e-4", "KernelBench, float32: torch.allclose, atol = rtol = 1e-4, 5 random trials",
       [](const Seen& seen) { return all_close(seen, 1e-4, 1e-4); }},
      {"allclose 1e-5", "torch.allclose, atol = rtol = 1e-5",
       [](const Seen& seen) { return all_close(seen, 1e-5, 1e-5); }},
      {"assert_close", "torch.testing.assert_close, defaults of float32: rtol = 1.3e-6, atol = 1e-5",
       [](const Seen& seen) { return all_close(seen, 1.3e-6, 1e-5); }},
      {"RMS ratio 0.005", "flash-linear-attention, fla/utils.py assert_close as its tests call it",
       [](const Seen& seen) { return rms_ratio_below(seen, 0.005); }},
      {"2 x bfloat16",
       "flash-attention, tests/test_flash_attn.py: error <= 2 x that of the same in low precision",
       [](const Seen& seen) { return error_at_most(seen, 2 * seen.error_in_bfloat16); }},
      {"2 x float32",
       "the same criterion, its low precision being that of the kernel: float32 against float64",
       [](const Seen& seen) { return error_at_most(seen, 2 * seen.error_in_float32); }},
      {"calibrated",
       "as gpuemu calibrates a tolerance per operation: here 1.5 x the 95th percentile of correct runs",
       [](const Seen& seen) { return error_at_most(seen, seen.calibrated); }},
  };
  return checkers;
}

namespace {

void recurrence_in_bfloat16(const RecurrenceProblem& p, const RecurrenceOutputs<float>& out) {
  using Matrix = recurrence::Matrix<float>;
  const auto load = [](const TensorView<const float, 4>& view, Index b, Index t, Index h) {
    return rounded(recurrence::load<float>(view, b, t, h), bits);
  };
  for (Index b = 0; b < p.batches(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      Matrix state = rounded(recurrence::load_initial_state<float>(p, b, h), bits);
      for (Index t = 0; t < p.steps(); ++t) {
        const float gate = rounded(p.gate(b, t, h), bits), beta = rounded(p.beta(b, t, h), bits);
        const recurrence::Vector<float> scaled = rounded(beta * load(p.k, b, t, h), bits);
        const Matrix write = rounded(scaled * load(p.v, b, t, h).transpose(), bits);
        state = rounded(rounded(gate * state, bits) + write, bits);
        recurrence::store_output<float>(out, b, t, h, rounded(state.transpose() * load(p.q, b, t, h), bits));
      }
      recurrence::store_final_state<float>(out, b, h, state);
    }
}

void axial_in_bfloat16(const AxialProblem& problem, const AxialOutputs<float>& out) {
  using Matrix = axial::Matrix<float>;
  axial::run_passes(problem, out, [&](const Matrix& input, const axial::Weights<float>& weights) -> Matrix {
    const Matrix x = rounded(input, bits);
    const Index D = x.cols(), heads = problem.heads, d = D / heads;
    Matrix n = x;
    for (Index t = 0; t < x.rows(); ++t) {
      const axial::RowVector<float> centred = (x.row(t).array() - x.row(t).mean()).matrix();
      const float root = std::sqrt(centred.squaredNorm() / float(D) + problem.eps);
      n.row(t) = (centred / root).cwiseProduct(rounded(weights.norm_weight, bits)) +
                 rounded(weights.norm_bias, bits);
    }
    n = rounded(n, bits);
    const Matrix qkv = rounded(n * rounded(weights.qkv, bits).transpose(), bits);
    Matrix o(x.rows(), D);
    for (Index head = 0; head < heads; ++head) {
      Matrix score = rounded(qkv.middleCols(head * d, d) * qkv.middleCols(D + head * d, d).transpose() *
                                 (1 / std::sqrt(float(d))),
                             bits);
      for (Index query = 0; query < score.rows(); ++query) {
        score.row(query) = (score.row(query).array() - score.row(query).maxCoeff()).exp().matrix();
        score.row(query) /= score.row(query).sum();
      }
      o.middleCols(head * d, d) = rounded(score, bits) * qkv.middleCols(2 * D + head * d, d);
    }
    Matrix update = rounded(rounded(o, bits) * rounded(weights.out, bits).transpose(), bits);
    update.rowwise() += rounded(weights.out_bias, bits);
    return rounded(x + rounded(update, bits), bits);
  });
}

}  // namespace

Outputs in_bfloat16(const Problem& problem) {
  Outputs outputs = make_outputs(problem);
  if (problem.operation == Operation::recurrence)
    recurrence_in_bfloat16(recurrence_view(problem), recurrence_view(outputs));
  else
    axial_in_bfloat16(axial_view(problem), axial_view(outputs));
  return outputs;
}

}  // namespace gaugeblock
