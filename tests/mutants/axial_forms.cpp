// Wrong axial blocks: the definition, and attention by an online softmax, written out once with a switch
// wherever one of the faults changes it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gaugeblock/reference/axial/passes.h"
#include "mutant.h"
#include "rounding.h"

namespace gaugeblock {
namespace {

using Matrix = axial::Matrix<float>;
using Vector = axial::RowVector<float>;

enum class Fault {
  no_max_subtraction,
  max_of_the_first_key,
  finite_sentinel,
  online_without_rescaling,
  online_sum_not_rescaled,
  no_scale,
  scale_of_all_channels,
  eps_outside_root,
  eps_dropped,
  eps_of_the_default,
  divisor_n_minus_1,
  last_channel_missing_in_variance,
  one_pass_variance_anywhere,
  norm_bias_dropped,
  q_and_k_swapped,
  heads_merged_in_wrong_order,
  columns_read_as_rows,
  rows_and_columns_exchanged,
  residual_from_the_wrong_pass,
  row_parameters_for_both,
  out_bias_dropped,
  last_key_dropped,
  keys_in_eights,
  channels_in_fours,
  last_of_odd_heads_missing,
  third_batch_repeats_second,
  weights_in_11_bits,
  softmax_in_8_bits,
  projection_in_half,
  n_in_17_bits,
  exp_in_16_bits,
  residual_of_the_normalised,
  zeros,
  zero_update,
  mean_of_v,
};

Matrix norm(const Matrix& x, const axial::Weights<float>& weights, float eps, Fault fault) {
  const Index D = x.cols();
  if (fault == Fault::eps_of_the_default) eps = 1e-5F;
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
  return fault == Fault::n_in_17_bits ? Matrix(rounded(n, 17)) : n;
}

/// Scores of one query against the keys, as weights of V that are not yet divided by their sum.
Matrix attention(const Matrix& Q, const Matrix& K, const Matrix& V, Index D, Fault fault) {
  const Index L = K.rows();
  const Index channels = fault == Fault::scale_of_all_channels ? D : Q.cols();
  const float scale = fault == Fault::no_scale ? 1.0F : 1 / std::sqrt(float(channels));
  Index keys = L;
  if (fault == Fault::last_key_dropped && L > 1) keys = L - 1;
  if (fault == Fault::keys_in_eights && L > 8) keys = L - L % 8;
  Matrix o(Q.rows(), V.cols());
  for (Index query = 0; query < Q.rows(); ++query) {
    Vector score = Q.row(query) * K.topRows(keys).transpose() * scale;
    if (fault == Fault::mean_of_v) score.setZero();
    if (fault == Fault::online_without_rescaling || fault == Fault::online_sum_not_rescaled) {
      float largest = score(0), sum = 1;
      Vector total = V.row(0);
      for (Index key = 1; key < keys; ++key) {
        const float before = largest;
        largest = std::max(largest, score(key));
        if (fault == Fault::online_sum_not_rescaled) total *= std::exp(before - largest);
        const float weight = std::exp(score(key) - largest);
        sum += weight;
        total += weight * V.row(key);
      }
      o.row(query) = total / sum;
      continue;
    }
    float largest = score.maxCoeff();
    if (fault == Fault::no_max_subtraction) largest = 0;
    if (fault == Fault::max_of_the_first_key) largest = score(0);
    if (fault == Fault::finite_sentinel) largest = std::max(largest, -5e4F);
    for (Index key = 0; key < keys; ++key) score(key) = std::exp(score(key) - largest);
    if (fault == Fault::softmax_in_8_bits) score = rounded(score, 8);
    if (fault == Fault::exp_in_16_bits) score = rounded(score, 16);
    o.row(query) = score * V.topRows(keys) / score.sum();
  }
  return o;
}

Matrix pass(const Matrix& x, const axial::Weights<float>& weights, const AxialProblem& problem, Fault fault) {
  const Index D = x.cols();
  const Index heads = problem.heads;
  const Index d = D / heads;
  const Matrix n = norm(x, weights, problem.eps, fault);
  const bool in_11_bits = fault == Fault::weights_in_11_bits;
  const Matrix qkv_weight = in_11_bits ? Matrix(rounded(weights.qkv, 11)) : weights.qkv;
  const Index inputs = fault == Fault::channels_in_fours && D > 4 ? D - D % 4 : D;
  Matrix qkv = n.leftCols(inputs) * qkv_weight.leftCols(inputs).transpose();
  if (fault == Fault::q_and_k_swapped) {
    const Matrix q = qkv.leftCols(D);
    qkv.leftCols(D) = qkv.middleCols(D, D).eval();
    qkv.middleCols(D, D) = q;
  }
  Matrix o(x.rows(), D);
  for (Index head = 0; head < heads; ++head) {
    Matrix of_head = attention(qkv.middleCols(head * d, d), qkv.middleCols(D + head * d, d),
                               qkv.middleCols(2 * D + head * d, d), D, fault);
    if (fault == Fault::last_of_odd_heads_missing && heads % 2 == 1 && heads > 1 && head == heads - 1)
      of_head.setZero();
    for (Index i = 0; i < d; ++i)
      o.col(fault == Fault::heads_merged_in_wrong_order ? i * heads + head : head * d + i) = of_head.col(i);
  }
  Matrix projected = o * weights.out.transpose();
  if (fault == Fault::projection_in_half) projected = in_half(projected);
  if (fault != Fault::out_bias_dropped) projected.rowwise() += weights.out_bias;
  if (fault == Fault::zero_update) projected.setZero();
  return (fault == Fault::residual_of_the_normalised ? n : x) + projected;
}

void block(const AxialProblem& problem, const AxialOutputs<float>& out, Fault fault) {
  const Matrix input = axial::load<float>(problem.x);
  Matrix tokens = input;
  const Index of_batch = problem.x.shape[1] * problem.x.shape[2];
  for (const bool along_rows : {true, false}) {
    if (problem.passes == (along_rows ? AxialPasses::col : AxialPasses::row)) continue;
    const bool has_row = problem.passes != AxialPasses::col;
    const bool by_row = along_rows || (fault == Fault::row_parameters_for_both && has_row);
    const axial::Weights<float> weights = axial::load<float>(by_row ? problem.row : problem.col);
    AxialProblem seen = problem;
    // A reshape instead of a transpose: the buffer is taken for one with H and W exchanged.
    if (fault == Fault::columns_read_as_rows) std::swap(seen.x.shape[1], seen.x.shape[2]);
    const bool exchanged = fault == Fault::rows_and_columns_exchanged;
    const axial::Sequences sequences(seen, along_rows != exchanged);
    Matrix result(tokens.rows(), tokens.cols());
    for (Index s = 0; s < sequences.count(); ++s) {
      const auto rows = Eigen::seqN(sequences[s].first, sequences[s].length, sequences[s].step);
      const Matrix x = tokens(rows, Eigen::all);
      result(rows, Eigen::all) = pass(x, weights, problem, fault);
    }
    if (fault == Fault::residual_from_the_wrong_pass && !along_rows) result += input - tokens;
    tokens = result;
    if (along_rows && out.row) axial::store(tokens, *out.row);
  }
  if (fault == Fault::zeros) tokens.setZero();
  if (fault == Fault::third_batch_repeats_second)
    for (Index b = 2; b < problem.x.shape[0]; ++b)
      tokens.middleRows(b * of_batch, of_batch) = tokens.middleRows(of_batch, of_batch).eval();
  axial::store(tokens, out.y);
}

struct Row {
  Fault fault;
  std::string id;
  Kind kind;
  std::string summary;
  std::string seen;
  std::string needs;
  bool hides = false;
  std::string form = "unfused";
};

constexpr bool hides = true;

}  // namespace

std::vector<Mutant> axial_form_mutants() {
  const std::vector<Row> rows{
      {Fault::no_max_subtraction, "no_max_subtraction", Kind::rescale,
       "the largest logit is not subtracted, and e^z overflows", "NVIDIA/FasterTransformer#43",
       "a logit above 88", hides},
      {Fault::max_of_the_first_key, "max_of_the_first_key", Kind::rescale,
       "the logit of the first key is subtracted instead of the largest", "operator",
       "a logit 88 above that of the first key", hides},
      {Fault::finite_sentinel, "finite_sentinel", Kind::rescale, "the running maximum begins at -5e4",
       "operator", "every logit of a query below -5e4 by 88", hides},
      {Fault::online_without_rescaling, "online_without_rescaling", Kind::rescale,
       "sums so far are not rescaled when the maximum grows", "operator",
       "a key whose logit is above those before", false, "online_softmax"},
      {Fault::online_sum_not_rescaled, "online_sum_not_rescaled", Kind::rescale,
       "the sum of V is rescaled when the maximum grows, the sum of weights is not", "operator",
       "a key whose logit is above those before", false, "online_softmax"},
      {Fault::no_scale, "no_scale", Kind::divisor, "logits are not divided by sqrt(d)", "operator",
       "d >= 2, L >= 2"},
      {Fault::scale_of_all_channels, "scale_of_all_channels", Kind::divisor,
       "logits are divided by sqrt(D) instead of sqrt(d)", "operator", "heads >= 2, L >= 2"},
      {Fault::eps_outside_root, "eps_outside_root", Kind::divisor, "eps is added to the root", "operator",
       "a variance near eps", hides},
      {Fault::eps_dropped, "eps_dropped", Kind::divisor, "eps is left out", "operator", "a variance near eps",
       hides},
      {Fault::eps_of_the_default, "eps_of_the_default", Kind::divisor, "eps is 1e-5 whatever is asked for",
       "operator", "another eps, a variance near it", hides},
      {Fault::divisor_n_minus_1, "divisor_n_minus_1", Kind::divisor, "the variance is divided by D - 1",
       "operator", "D >= 2"},
      {Fault::last_channel_missing_in_variance, "last_channel_missing_in_variance", Kind::last_element,
       "the variance misses the last channel", "operator", "D >= 2"},
      {Fault::one_pass_variance_anywhere, "one_pass_variance_anywhere", Kind::divisor,
       "the variance is E[x^2] - mean^2, also where that cancels", "microsoft/onnxruntime#21935",
       "a mean far above the spread", hides},
      {Fault::norm_bias_dropped, "norm_bias_dropped", Kind::indexing, "LayerNorm's bias is not added",
       "operator", "a bias other than 0"},
      {Fault::q_and_k_swapped, "q_and_k_swapped", Kind::axis, "Q and K are exchanged", "operator", "L >= 2"},
      {Fault::heads_merged_in_wrong_order, "heads_merged_in_wrong_order", Kind::axis,
       "the outputs of the heads are interleaved", "hackiey/QAnet-pytorch#2", "heads >= 2, d >= 2"},
      {Fault::columns_read_as_rows, "columns_read_as_rows", Kind::axis,
       "a reshape takes the place of the transpose", "plemeri/UACANet#8", "H != W", hides},
      {Fault::rows_and_columns_exchanged, "rows_and_columns_exchanged", Kind::axis,
       "the row pass runs along the columns, and the other way round", "plemeri/UACANet#8", "H >= 2, W >= 2"},
      {Fault::residual_from_the_wrong_pass, "residual_from_the_wrong_pass", Kind::carry_in,
       "the column pass adds to x instead of the row pass's result", "operator", "both passes"},
      {Fault::row_parameters_for_both, "row_parameters_for_both", Kind::carry_in,
       "the column pass takes the parameters of the row pass", "operator", "both passes"},
      {Fault::out_bias_dropped, "out_bias_dropped", Kind::indexing, "the projection's bias is not added",
       "operator", "a bias other than 0"},
      {Fault::last_key_dropped, "last_key_dropped", Kind::last_element,
       "the last key of a sequence is left out", "woct0rdho/SageAttention#98", "L >= 2"},
      {Fault::keys_in_eights, "keys_in_eights", Kind::indexing,
       "keys behind the last full eight are left out", "woct0rdho/SageAttention#98", "L > 8, L % 8 != 0",
       hides},
      {Fault::channels_in_fours, "channels_in_fours", Kind::indexing,
       "the projection to Q, K and V leaves out channels behind the last full four", "operator",
       "D > 4, D % 4 != 0", hides},
      {Fault::last_of_odd_heads_missing, "last_of_odd_heads_missing", Kind::last_element,
       "heads go in pairs: the last of an odd number gives 0", "operator", "heads odd, heads >= 3", hides},
      {Fault::third_batch_repeats_second, "third_batch_repeats_second_in_axial", Kind::last_element,
       "batches from the third on repeat the second", "operator", "B >= 3"},
      {Fault::weights_in_11_bits, "weights_in_11_bits", Kind::precision,
       "W_qkv is rounded to 11 bits, as TF32 has", "operator", "L >= 1", hides},
      {Fault::softmax_in_8_bits, "softmax_in_8_bits", Kind::precision,
       "softmax weights are rounded to 8 bits, as bfloat16 has", "operator", "L >= 2", hides},
      {Fault::projection_in_half, "projection_in_half", Kind::precision,
       "the output projection is added up in float16", "operator", "L >= 1", hides},
      {Fault::n_in_17_bits, "n_in_17_bits", Kind::precision, "the normalised tokens keep 17 bits", "operator",
       "L >= 1", hides},
      {Fault::exp_in_16_bits, "exp_in_16_bits", Kind::precision,
       "e^z keeps 16 bits, as a table of a fast exponential does", "operator", "L >= 2", hides},
      {Fault::residual_of_the_normalised, "residual_of_the_normalised", Kind::aliasing,
       "LayerNorm works in place, and the residual adds the normalised token", "ggml-org/ggml#1521",
       "L >= 1"},
      {Fault::zeros, "zeros_in_axial", Kind::cheat, "y is 0", "ScalingIntelligence/KernelBench#165",
       "L >= 1"},
      {Fault::zero_update, "zero_update", Kind::cheat, "y is x", "ScalingIntelligence/KernelBench#165",
       "a projection other than 0"},
      {Fault::mean_of_v, "mean_of_v", Kind::cheat, "Q and K are ignored: every key counts the same",
       "Xilinx/mlir-air#1427", "L >= 2"},
  };
  std::vector<Mutant> mutants;
  for (const Row& row : rows)
    mutants.push_back(form_mutant(Operation::axial, row.form, row.id, row.kind, row.summary, row.seen,
                                  row.needs, row.hides,
                                  [fault = row.fault](const Problem& problem, Outputs& outputs) {
                                    block(axial_view(problem), axial_view(outputs), fault);
                                  }));
  return mutants;
}

}  // namespace gaugeblock
