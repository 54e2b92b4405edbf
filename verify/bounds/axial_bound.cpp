// A running error analysis of one pass, sequence by sequence.
//
// Notation. A hat is what a float32 implementation computes, everything else is exact. x̂ = x + δ with |δ| <=
// e: the input of a column pass is the output of a row pass. D channels, d a head, L tokens, γ and β
// LayerNorm's weight and bias. Every δ_k below is one of the implementation's rounding errors and unknown;
// what is known is a bound on it. The point of the analysis is to push each unknown through the exact linear
// maps behind it *before* absolute values are taken, so that Σ_i |Σ_c k_c W_ci| stands where Σ_c |k_c| Σ_i
// |W_ci| would, and to take absolute values only where unknowns are independent. Products of two unknowns are
// kept, so that the result is a bound and not an estimate.
//
// LayerNorm (claims axial.layer_norm.two_pass, axial.layer_norm.one_pass). With a = σ² + eps, r = a^-1/2, f =
// x - μ
//
//     n̂_i - n_i = ρ γ_i r f_i + (1 + ρ) r γ_i (δ_i - mean δ) - (1 + ρ) r γ_i ε + ℓ_i
//
// where ρ is the relative error of r, ε the error of the mean (both the same for all channels of a token) and
// ℓ_i what the last four roundings add. |ρ| <= R, |ε| <= e_μ, |ℓ| <= loc. For any vector w of D numbers
//
//     |w · (n̂ - n)| <= R |Σ w_i γ_i r f_i| + (1 + R) r (Σ_i |w_i γ_i - mean(w γ)| e_i + e_μ |Σ w_i γ_i|)
//                    + Σ |w_i| loc_i
//
// Logits (axial.linear, axial.attention.*). Δq = W_q Δn + τ with τ the rounding errors of the dot products,
// so k · Δq = (W_qᵀ k) · Δn + k · τ: the inequality above with w = W_qᵀ k, and the same for q · Δk; then Δq ·
// Δk.
//
// Softmax. With computed weights p̂_j = λ w_j κ_j, w_j = exp(z_j - max z), |ln κ_j| <= ξ_j and λ common to all
// keys, and o = Σ w_j v_j / Σ w_j:
//
//     Σ p̂_j v_j / Σ p̂_j - o = Σ w_j (κ_j - 1) (v_j - o) / Σ w_j κ_j         since Σ w_j (v_j - o) = 0
//
// The denominator is at least Σ w_j exp(-ξ_j) > 0, so there is always a bound; and the left side is also a
// mean of v_j - o, hence at most max_j |v_j - o|. Both hold for any linear map of v, in particular for W_out
// v.
//
// Projection and residual (axial.residual): ŷ = (x̂ + p̂)(1 + δ), p̂ the dot products with bias.
#include "gaugeblock/verify/bounds/axial_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gaugeblock/reference/axial/passes.h"
#include "gaugeblock/verify/bounds/axial_claims.h"
#include "gaugeblock/verify/bounds/split_operands.h"

namespace gaugeblock {
namespace {

using axial::RowVector;
using axial::Sequence;
using axial::Sequences;
using axial::Weights;
using Matrix = axial::Matrix<double>;
using Vector = RowVector<double>;
using claims::gamma;

constexpr double u = claims::unit_roundoff;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// What the analysis needs to know about an implementation.
struct Model {
  enum class Rescalings { none, in_order, any };
  bool one_pass_variance = false;
  Rescalings rescalings = Rescalings::none;
  /// Nothing is known (claim axial.any_form): the variance may be taken in one pass where that does not
  /// cancel, LayerNorm may be folded into x·s + (β - μ s), and the bias may be added to x before the
  /// projected sum.
  bool any_form = false;
  double exp_error = 0;  ///< relative
  double root_roundings = 0;
  double underflow = 0;
  /// Matrix products multiply split operands (claim: axial.split_half).
  bool split = false;

  double linear(double D) const {
    return split ? claims::split_dot_roundings(D) : claims::linear_roundings(D);
  }
  double linear_with_bias(double D) const {
    return split ? claims::split_dot_roundings(D) + 1 : claims::linear_with_bias_roundings(D);
  }
  double logit(double d) const { return split ? claims::split_dot_roundings(d) : claims::logit_roundings(d); }
  double numerator(double L, double rescalings) const {
    return split ? claims::split_dot_roundings(L) + rescalings : claims::numerator_roundings(L, rescalings);
  }
  /// A reciprocal within 1 ulp counts 2.
  double quotient(double L, double rescalings) const {
    return claims::quotient_roundings(L, rescalings) + (split ? 2 : 0);
  }
};

Model model_of(const Arithmetic& arithmetic) {
  Model model;
  model.exp_error = std::max(arithmetic.exp_error, 1.0) * u;
  if (arithmetic.form == "online_softmax") {
    model.rescalings = Model::Rescalings::in_order;
  } else if (arithmetic.form == "one_pass_variance") {
    model.one_pass_variance = true;
  } else if (arithmetic.form == "any_form") {
    model.rescalings = Model::Rescalings::any;
    model.any_form = true;
    if (arithmetic.exp_error == 0) model.exp_error = claims::unknown_exp_error * u;
  } else if (arithmetic.form != "unfused" && arithmetic.form != "fused_sequence") {
    throw std::logic_error("no bound of the axial block is known for '" + arithmetic.form + "'");
  }
  model.root_roundings =
      arithmetic.reciprocal_root ? claims::reciprocal_root_roundings : claims::root_roundings;
  model.underflow = arithmetic.flush_to_zero ? claims::underflow_flushed : claims::underflow;
  model.split = arithmetic.operands == Operands::split_half;
  return model;
}

/// x, [tokens, D], and a bound e on the error of each element; `exact` says that e is zero.
struct Tokens {
  Matrix value;
  Matrix error;
  bool exact = true;
  std::vector<bool> unsteady{};  ///< [tokens]: see AxialBound; empty: none is
};

/// The exact LayerNorm of one sequence and how far a computed one may be from it; see the top of the file.
struct Normalized {
  Matrix n;                     ///< [L,D]
  Matrix local;                 ///< loc [L,D]
  Matrix error;                 ///< bound on |n̂ - n| element by element [L,D]
  Eigen::VectorXd root_error;   ///< R [L]
  Eigen::VectorXd input_gain;   ///< (1 + R) r [L]
  Eigen::VectorXd shift_error;  ///< (1 + R) r e_μ [L]
  bool bounded = true;          ///< false where R has no bound or something may overflow
};

Normalized layer_norm(const Matrix& x, const Matrix& e, const Weights<double>& weights, double eps,
                      const Model& model) {
  const Index L = x.rows();
  const auto D = static_cast<double>(x.cols());
  const double eta = model.underflow;
  Normalized result{Matrix(L, x.cols()),
                    Matrix(L, x.cols()),
                    Matrix(L, x.cols()),
                    Eigen::VectorXd(L),
                    Eigen::VectorXd(L),
                    Eigen::VectorXd(L),
                    true};
  for (Index t = 0; t < L; ++t) {
    const double mean = x.row(t).mean();
    const Vector f = (x.row(t).array() - mean).matrix();
    const double variance = f.squaredNorm() / D;
    const double a = variance + eps;
    const double r = 1 / std::sqrt(a);
    result.n.row(t) = (f * r).cwiseProduct(weights.norm_weight) + weights.norm_bias;

    const Vector size = x.row(t).cwiseAbs() + e.row(t);
    const double mean_error = gamma(claims::mean_roundings(D)) * size.mean() + 2 * eta;  // e_μ
    const double input_mean = e.row(t).mean();
    // Variance of x̂ less that of x: 2 mean(f δ) + variance(δ).
    const double input_variance = 2 * f.cwiseAbs().cwiseProduct(e.row(t)).mean() + e.row(t).squaredNorm() / D;
    const double m = std::abs(mean) + input_mean;  // at least the mean of x̂
    const double one_pass = (1 + u) * (gamma(claims::mean_square_roundings(D)) * size.squaredNorm() / D +
                                       (1 + u) * (2 * m * mean_error + mean_error * mean_error) + u * m * m) +
                            u * (variance + input_variance) + input_variance + 8 * eta;
    // mean((x̂ - μ̂)²) = variance(x̂) + ε²
    const double shift = input_variance + mean_error * mean_error;
    const double two_pass = gamma(claims::variance_roundings(D)) * (variance + shift) + shift + 8 * eta;
    double variance_error = model.one_pass_variance ? one_pass : two_pass;
    if (model.any_form && 2 * one_pass <= a) variance_error = std::max(one_pass, two_pass);
    const double alpha = ((1 + u) * variance_error + u * a) / a;
    if (!(alpha < 1) || !(4 * size.squaredNorm() < claims::overflow_threshold)) {
      result.bounded = false;
      return result;
    }
    // r̂ / r lies between (1 + α)^-1/2 and (1 - α)^-1/2 but for the roundings of root and reciprocal.
    const double R = (1 + gamma(model.root_roundings)) / std::sqrt(1 - alpha) - 1;
    const double normalize = gamma(claims::normalize_roundings);
    for (Index i = 0; i < x.cols(); ++i) {
      const double gain = std::abs(weights.norm_weight(i)) * r;
      // |δ_i - mean δ| <= (1 - 1/D) e_i + (1/D) Σ_{j≠i} e_j, which only rounding could make negative.
      const double spread = std::max(e(t, i) * (1 - 2 / D) + input_mean, 0.0);
      const double moved = spread + mean_error;
      const double common = gain * (R * std::abs(f(i)) + (1 + R) * moved);
      const double product = gain * (1 + R) * (std::abs(f(i)) + moved);
      // Where a product may underflow before it meets a large factor: x - mean, or x and mean themselves.
      const double factor = model.any_form ? size(i) + m + mean_error : std::abs(f(i)) + moved;
      const double underflow = (model.any_form ? 8 : 4) * eta * (1 + std::abs(weights.norm_weight(i))) *
                               (1 + (1 + R) * r) * (1 + factor);
      result.local(t, i) =
          normalize * (1 + u) * product + u * (std::abs(result.n(t, i)) + common) + underflow;
      if (model.any_form)
        result.local(t, i) +=
            gamma(claims::folded_roundings) *
            (gain * (1 + R) * (size(i) + 2 * (m + mean_error)) + std::abs(weights.norm_bias(i)));
      result.error(t, i) = common + result.local(t, i);
    }
    result.root_error(t) = R;
    result.input_gain(t) = (1 + R) * r;
    result.shift_error(t) = (1 + R) * r * mean_error;
  }
  return result;
}

/// Rounding errors of the logits of every query and key: [L,L]. `Q` and `K`, [L,d], bound the sizes of the
/// computed ones, `product` is Q Kᵀ.
Matrix logit_rounding(const Matrix& product, const Matrix& Q, const Matrix& K, const Model& model) {
  const auto d = static_cast<double>(Q.cols());
  Matrix result = gamma(model.logit(d)) / std::sqrt(d) * product;
  // 2 η Σ (|q| + |k|): where the scale is applied to q or to k first.
  result.colwise() += Eigen::VectorXd(2 * model.underflow * Q.rowwise().sum());
  result.rowwise() += Vector(2 * model.underflow * K.rowwise().sum().transpose());
  result.array() += 4 * d * model.underflow;
  return result;
}

/// How often the running maximum may change after the first key: z_j may exceed all before it.
double count_rescalings(const Vector& z, const Vector& z_error, const Model& model) {
  if (model.rescalings == Model::Rescalings::none) return 0;
  if (model.rescalings == Model::Rescalings::any) return static_cast<double>(z.size() - 1);
  double count = 0;
  double certain = z(0) - z_error(0);
  for (Index j = 1; j < z.size(); ++j) {
    if (!(z(j) + z_error(j) <= certain)) ++count;
    certain = std::max(certain, z(j) - z_error(j));
  }
  return count;
}

/// min(Σ_j change_lj |v_j - o_l|, max_j |v_j - o_l|) for every query l and every column.
Matrix deviation(const Matrix& change, const Matrix& v, const Matrix& o) {
  Matrix result(o.rows(), v.cols());
  Vector sum(v.cols());
  Vector largest(v.cols());
  Vector distance(v.cols());
  for (Index l = 0; l < o.rows(); ++l) {
    sum.setZero();
    largest.setZero();
    for (Index j = 0; j < v.rows(); ++j) {
      distance = (v.row(j) - o.row(l)).cwiseAbs();
      sum += change(l, j) * distance;
      largest = largest.cwiseMax(distance);
    }
    for (Index c = 0; c < v.cols(); ++c) result(l, c) = sum(c) <= largest(c) ? sum(c) : largest(c);
  }
  return result;
}

/// The queries for which, in some column, rounding may move the weighted mean to any of the values:
/// Σ_j change_lj · distance > max_j distance. Where all values agree within their errors, the computed ones may
/// differ by these alone, unless their tokens x are alike: these are computed alike.
std::vector<bool> may_go_anywhere(const Matrix& change, const Matrix& v, const Matrix& v_error,
                                  const Matrix& o, const Matrix& x) {
  std::vector<bool> result;
  for (Index l = 0; l < o.rows(); ++l) {
    const auto anywhere_in = [&](const Matrix& distance) {
      const Vector sum = change.row(l) * distance, largest = distance.colwise().maxCoeff();
      return !(sum.array() <= largest.array()).all();
    };
    const Matrix exact = (v.rowwise() - o.row(l)).cwiseAbs();
    bool anywhere = anywhere_in(exact);
    if (!anywhere && (exact.array() <= v_error.array()).all()) {
      Matrix computed = exact;
      for (Index j = 0; j < v.rows(); ++j)
        if (x.row(j) != x.row(l)) computed.row(j) += v_error.row(j);
      anywhere = anywhere_in(computed);
    }
    result.push_back(anywhere);
  }
  return result;
}

/// softmax(z) V of one head.
struct Attention {
  Matrix weight;  ///< exp(z - max z) [L,L]
  Matrix o;       ///< [L,d]
};

Attention attention(const Matrix& z, const Matrix& V) {
  Attention result;
  result.weight.resize(z.rows(), z.cols());
  for (Index l = 0; l < z.rows(); ++l) result.weight.row(l) = (z.row(l).array() - z.row(l).maxCoeff()).exp();
  const Eigen::VectorXd total = result.weight.rowwise().sum();
  result.o = total.cwiseInverse().asDiagonal() * (result.weight * V);
  return result;
}

/// How far a computed one may be from it, given bounds on the errors of z, [L,L], and of V, [L,d].
struct AttentionBound {
  Matrix change;          ///< w_j (exp(ξ_j) - 1) / Σ w exp(-ξ) [L,L]
  Matrix largest_weight;  ///< upper bounds of the computed, normalised weights [L,L]
  Matrix inherited;       ///< from the errors of V [L,d]
  Matrix softmax_change;  ///< from the errors of the weights [L,d]
  Matrix quotient_error;  ///< from rounding the weighted mean [L,d]
};

AttentionBound attention_error(const Attention& exact, const Matrix& z, const Matrix& z_error,
                               const Matrix& V, const Matrix& V_error, const Model& model) {
  const auto L = static_cast<double>(z.rows());
  AttentionBound result;
  result.change.resize(z.rows(), z.cols());
  result.largest_weight.resize(z.rows(), z.cols());
  Eigen::VectorXd rescalings(z.rows());
  for (Index l = 0; l < z.rows(); ++l) {
    rescalings(l) = count_rescalings(z.row(l), z_error.row(l), model);
    double log_exp_error = (rescalings(l) + 1) * (model.exp_error / (1 - model.exp_error) + model.underflow);
    if (model.split) log_exp_error += claims::split_exponent_shift * u;
    const double distances = model.split ? claims::split_distance_roundings : 1;
    const double top = z.row(l).maxCoeff();
    const double largest_error = z_error.row(l).maxCoeff();
    const Eigen::ArrayXd xi = z_error.row(l).array().transpose() +
                              distances * u * (top - z.row(l).array().transpose() + 2 * largest_error) +
                              log_exp_error;
    const Eigen::ArrayXd w = exact.weight.row(l).array().transpose();
    const double den = (w * (-xi).exp()).sum();
    for (Index j = 0; j < z.cols(); ++j) {
      // An exponent that overflows gives infinity; both minima then have their other side.
      result.change(l, j) = w(j) == 0 ? 0 : w(j) * std::expm1(xi(j)) / den;
      result.largest_weight(l, j) = std::min(1.0, w(j) == 0 ? 0 : w(j) * std::exp(xi(j)) / den);
    }
  }

  // V and the rounding of the quotient, channel by channel.
  const Matrix V_size = V.cwiseAbs() + V_error;
  const Vector largest_V = V_size.colwise().maxCoeff();
  const Matrix numerator_size = result.largest_weight * V_size;
  result.inherited = result.largest_weight * V_error;
  result.softmax_change = deviation(result.change, V, exact.o);
  result.quotient_error.resize(V.rows(), V.cols());
  for (Index l = 0; l < V.rows(); ++l) {
    const double numerator = gamma(model.numerator(L, rescalings(l)));
    const double quotient = gamma(model.quotient(L, rescalings(l)));
    for (Index c = 0; c < V.cols(); ++c)
      result.quotient_error(l, c) =
          (1 + quotient) * numerator * numerator_size(l, c) +
          quotient * (std::abs(exact.o(l, c)) + result.softmax_change(l, c) + result.inherited(l, c)) +
          claims::quotient_lost(L, rescalings(l), largest_V(c));
  }
  if (model.split) result.quotient_error.rowwise() += claims::split_weights_loss(L) * largest_V;
  return result;
}

/// W Γ with its row means taken out: what multiplies δ in W Γ (δ - mean δ).
Matrix centred(const Matrix& W, const Vector& norm_weight) {
  Matrix result = W * norm_weight.asDiagonal();
  result.colwise() -= Eigen::VectorXd(result.rowwise().mean());
  return result;
}

/// What split operands lose absolutely, as scaled by gpu/axial/split_half.cu: 2^-25 of a scaled operand, for
/// operands scaled by bounds on their size. All of it is in units of the unscaled results.
struct SplitLoss {
  Vector qkv;         ///< [3D] of an element of Q, K or V
  Vector from_q;      ///< [D] of a logit, times |q_c|: what k_c loses
  Vector from_k;      ///< [D] of a logit, times |k_c|: what q_c loses
  Vector o;           ///< [D] of an element of o
  Vector out;         ///< [D] of an element of the projection
  bool known = true;  ///< false where exponents would leave float32, and scales are not what they should be

  SplitLoss(const Weights<double>& weights, Index heads) {
    const Index D = weights.norm_weight.size();
    const Index d = D / heads;
    const auto channels = static_cast<double>(D);
    const Vector n = std::sqrt(channels) * weights.norm_weight.cwiseAbs() + weights.norm_bias.cwiseAbs();
    const Vector largest = n * weights.qkv.cwiseAbs().transpose();  // of |q|, |k|, |v|, whatever the token
    for (const Vector* bound : {&n, &largest})
      for (Index i = 0; i < bound->size(); ++i)
        known = known && ((*bound)(i) == 0 || ((*bound)(i) > 0x1p-80 && (*bound)(i) < 0x1p80));
    // Scaled, n lies within 2^14 and W n within 2^28, both by less than a factor of 4: n loses 2^-25 Σ|W|, W
    // loses 2^-25 D max|n|.
    qkv = claims::split_sum_loss * (channels + 2) * largest;
    from_q = from_k = Vector::Zero(D);
    const double scale = std::sqrt(1.5 / std::sqrt(static_cast<double>(d)));
    for (Index head = 0; head < heads; ++head) {
      double top = 0;
      for (Index c = head * d; c < (head + 1) * d; ++c) top = std::max(top, largest(c) * largest(D + c));
      for (Index c = head * d; c < (head + 1) * d; ++c) {
        const double product = largest(c) * largest(D + c);
        if (product == 0) continue;  // the channel adds nothing to any logit
        // q_c and k_c share the room that is left where their product is small.
        qkv(c) *= std::sqrt(top / product);
        qkv(D + c) *= std::sqrt(top / product);
        from_q(c) = claims::split_logit_loss * scale * std::sqrt(largest(D + c) / largest(c));
        from_k(c) = claims::split_logit_loss * scale * std::sqrt(largest(c) / largest(D + c));
      }
    }
    o = claims::split_sum_loss * largest.tail(D);
    out = claims::split_sum_loss * (channels + 2) * (largest.tail(D) * weights.out.cwiseAbs().transpose());
  }
};

/// Everything about a pass's parameters that does not depend on tokens.
struct Maps {
  Weights<double> weights;
  Matrix qkv_size;          ///< |W_qkv|
  Matrix qkv_centred;       ///< W_qkv Γ without row means
  Matrix qkv_centred_size;  ///< its absolute value
  Vector qkv_gain;          ///< Σ_i W_oi γ_i
  Vector qkv_bias;          ///< W_qkv β
  Matrix out_size;          ///< |W_out|
  SplitLoss split_loss;

  Maps(Weights<double> parameters, Index heads) : weights(std::move(parameters)), split_loss(weights, heads) {
    qkv_size = weights.qkv.cwiseAbs();
    qkv_centred = centred(weights.qkv, weights.norm_weight);
    qkv_centred_size = qkv_centred.cwiseAbs();
    qkv_gain = weights.norm_weight * weights.qkv.transpose();
    qkv_bias = weights.norm_bias * weights.qkv.transpose();
    out_size = weights.out.cwiseAbs();
  }
};

/// Bounds one pass over one sequence.
class SequenceBound {
 public:
  SequenceBound(const Matrix& x, const Matrix& e, bool exact, const Maps& maps, Index heads, double eps,
                const Model& model)
      : x_(x),
        e_(e),
        exact_(exact),
        maps_(maps),
        L_(x.rows()),
        D_(x.cols()),
        d_(x.cols() / heads),
        heads_(heads),
        model_(model),
        normalized_(layer_norm(x, e, maps.weights, eps, model)) {
    const Index rescalings = model.rescalings == Model::Rescalings::none ? 0 : L_ - 1;  // at most
    if (!claims::within_theorems(static_cast<double>(D_), static_cast<double>(L_),
                                 static_cast<double>(rescalings), model.exp_error, model.underflow))
      normalized_.bounded = false;
    if (model.split && !maps.split_loss.known) normalized_.bounded = false;
  }

  /// Tokens for which, in some head, rounding may move the weighted mean of the values to any of them [L].
  const std::vector<bool>& anywhere() const { return anywhere_; }

  /// The exact result y and the bound on its error, both [L,D].
  void compute(Matrix& y, Matrix& y_error) {
    using Eigen::seqN;
    const Weights<double>& weights = maps_.weights;
    qkv_ = normalized_.n * weights.qkv.transpose();
    o_ = Matrix::Zero(L_, D_);
    if (normalized_.bounded) bound_qkv();
    projection_error_ = Matrix::Zero(L_, D_);
    o_error_ = Matrix::Zero(L_, D_);
    anywhere_.assign(static_cast<std::size_t>(L_), false);
    for (Index head = 0; head < heads_; ++head) attend(head);
    const Matrix projected = (o_ * weights.out.transpose()).rowwise() + weights.out_bias;
    y = x_ + projected;
    if (!normalized_.bounded) {
      y_error = Matrix::Constant(L_, D_, infinity);
      return;
    }

    const Matrix sum = ((o_.cwiseAbs() + o_error_) * maps_.out_size.transpose()).rowwise() +
                       Vector(weights.out_bias.cwiseAbs());
    const double rounding = gamma(model_.linear_with_bias(static_cast<double>(D_)));
    y_error = e_ + projection_error_ + rounding * sum;
    if (model_.split) y_error.rowwise() += maps_.split_loss.out;
    y_error.array() += 2 * static_cast<double>(D_ + 1) * model_.underflow;
    if (model_.any_form)
      y_error += u * ((x_.cwiseAbs() + e_).rowwise() + Vector(weights.out_bias.cwiseAbs()));
    y_error = claims::outward * ((1 + u) * y_error + u * y.cwiseAbs());
    y_error.array() += 2 * model_.underflow;  // of the residual
    for (Index i = 0; i < y.size(); ++i) {
      const double largest = sum(i) + std::abs(x_(i)) + y_error(i);
      if (!overflows_ && largest < claims::overflow_threshold) continue;
      y_error(i) = infinity;
    }
  }

 private:
  /// Rounding errors of the dot products alone, and bounds on the whole errors of Q, K and V.
  void bound_qkv() {
    const auto D = static_cast<double>(D_);
    const Matrix size = normalized_.n.cwiseAbs() + normalized_.error;
    const Matrix majorant = size * maps_.qkv_size.transpose();
    dot_error_ = gamma(model_.linear(D)) * majorant;
    dot_error_.array() += 2 * D * model_.underflow;
    if (model_.split) dot_error_.rowwise() += maps_.split_loss.qkv;
    qkv_error_ = normalized_.local * maps_.qkv_size.transpose() + dot_error_;
    Matrix input;
    if (!exact_) input = e_ * maps_.qkv_centred_size.transpose();
    for (Index t = 0; t < L_; ++t) {
      qkv_error_.row(t) += normalized_.root_error(t) * (qkv_.row(t) - maps_.qkv_bias).cwiseAbs() +
                           normalized_.shift_error(t) * maps_.qkv_gain.cwiseAbs();
      if (!exact_) qkv_error_.row(t) += normalized_.input_gain(t) * input.row(t);
    }
    overflows_ = !(majorant.maxCoeff() < claims::overflow_threshold);
  }

  /// Bounds |c_j · W Δn_t| for every row c_j [d] of `factors`, [J,d], and every token t of the sequence:
  /// [L,J]. W are the rows of W_qkv from `first` on, of which `value`, [L,d], is the product with n.
  Matrix through_linear(const Matrix& factors, Index first, const Matrix& value) const {
    const auto rows = Eigen::seqN(first, d_);
    const Matrix w = factors * maps_.weights.qkv(rows, Eigen::all);
    Matrix result = normalized_.local * w.cwiseAbs().transpose();
    const Vector bias = maps_.qkv_bias(rows);
    const Vector gain = maps_.qkv_gain(rows);
    const Matrix common = (value.rowwise() - bias) * factors.transpose();
    const Vector shift = (gain * factors.transpose()).cwiseAbs();
    Matrix input;
    if (!exact_) input = e_ * (factors * maps_.qkv_centred(rows, Eigen::all)).cwiseAbs().transpose();
    for (Index t = 0; t < L_; ++t) {
      result.row(t) +=
          normalized_.root_error(t) * common.row(t).cwiseAbs() + normalized_.shift_error(t) * shift;
      if (!exact_) result.row(t) += normalized_.input_gain(t) * input.row(t);
    }
    return result;
  }

  /// With fewer channels a head than this there is next to nothing to gain from exact maps, and much to pay.
  bool narrow() const { return d_ < 4; }

  void attend(Index head) {
    using Eigen::seqN;
    const auto L = static_cast<double>(L_);
    const auto d = static_cast<double>(d_);
    const auto channels = seqN(head * d_, d_);
    const Index k_first = D_ + head * d_;
    const Index v_first = 2 * D_ + head * d_;
    const Matrix Q = qkv_(Eigen::all, channels);
    const Matrix K = qkv_(Eigen::all, seqN(k_first, d_));
    const Matrix V = qkv_(Eigen::all, seqN(v_first, d_));
    const double scale = 1 / std::sqrt(d);
    const Matrix z = scale * Q * K.transpose();
    const Attention exact = attention(z, V);
    const Matrix& o = exact.o;
    o_(Eigen::all, channels) = o;
    if (!normalized_.bounded) return;

    // Logits.
    const Matrix Q_error = qkv_error_(Eigen::all, channels);
    const Matrix K_error = qkv_error_(Eigen::all, seqN(k_first, d_));
    const Matrix Q_size = Q.cwiseAbs() + Q_error;
    const Matrix K_size = K.cwiseAbs() + K_error;
    const Matrix product_size = Q_size * K_size.transpose();
    Matrix z_error = Q_error * K_error.transpose();
    if (narrow()) {
      z_error += Q_error * K.cwiseAbs().transpose() + Q.cwiseAbs() * K_error.transpose();
    } else {
      z_error +=
          through_linear(K, head * d_, Q) + dot_error_(Eigen::all, channels) * K.cwiseAbs().transpose();
      z_error += (through_linear(Q, k_first, K) +
                  dot_error_(Eigen::all, seqN(k_first, d_)) * Q.cwiseAbs().transpose())
                     .transpose();
    }
    z_error = scale * z_error + logit_rounding(product_size, Q_size, K_size, model_);
    if (model_.split) {
      z_error.colwise() += Eigen::VectorXd(Q_size * maps_.split_loss.from_q(channels).transpose());
      z_error.rowwise() += Vector(maps_.split_loss.from_k(channels) * K_size.transpose());
    }
    if (!(product_size.maxCoeff() < claims::overflow_threshold)) overflows_ = true;

    const Matrix V_error = qkv_error_(Eigen::all, seqN(v_first, d_));
    AttentionBound bound = attention_error(exact, z, z_error, V, V_error, model_);
    const std::vector<bool> anywhere = may_go_anywhere(bound.change, V, V_error, exact.o, x_);
    for (std::size_t l = 0; l < anywhere_.size(); ++l) anywhere_[l] = anywhere_[l] || anywhere[l];
    if (model_.split) bound.quotient_error.rowwise() += Vector(maps_.split_loss.o(channels));
    o_error_(Eigen::all, channels) = bound.softmax_change + bound.inherited + bound.quotient_error;
    if (!(2 * L * (V.cwiseAbs() + V_error).maxCoeff() < claims::overflow_threshold)) overflows_ = true;

    // The same through W_out.
    const Matrix out_size = maps_.out_size(Eigen::all, channels);
    if (narrow()) {
      projection_error_ += o_error_(Eigen::all, channels) * out_size.transpose();
      return;
    }
    const Matrix W_out = maps_.weights.out(Eigen::all, channels);
    projection_error_ += bound.quotient_error * out_size.transpose();
    projection_error_ += deviation(bound.change, V * W_out.transpose(), o * W_out.transpose());
    if (exact_) {
      projection_error_ += bound.largest_weight * (V_error * out_size.transpose());
    } else {
      projection_error_ +=
          bound.largest_weight * (through_linear(W_out, v_first, V) +
                                  dot_error_(Eigen::all, seqN(v_first, d_)) * out_size.transpose());
    }
  }

  const Matrix& x_;
  const Matrix& e_;
  bool exact_;
  const Maps& maps_;
  Index L_, D_, d_, heads_;
  const Model& model_;
  Normalized normalized_;
  Matrix qkv_, dot_error_, qkv_error_;     // [L,3D]
  Matrix o_, o_error_, projection_error_;  // [L,D]; projection_error_ bounds |W_out (ô - o)|
  std::vector<bool> anywhere_;             // [L]
  bool overflows_ = false;
};

Tokens bound_pass(const Tokens& in, const AxialPassParameters& parameters, const Sequences& sequences,
                  const AxialProblem& problem, const Model& model) {
  const Maps maps(axial::load<double>(parameters), problem.heads);
  Tokens out{Matrix(in.value.rows(), in.value.cols()), Matrix(in.value.rows(), in.value.cols()), false,
             std::vector<bool>(static_cast<std::size_t>(in.value.rows()))};
  Matrix y;
  Matrix y_error;
  for (Index s = 0; s < sequences.count(); ++s) {
    const Sequence sequence = sequences[s];
    const auto tokens = Eigen::seqN(sequence.first, sequence.length, sequence.step);
    const Matrix x = in.value(tokens, Eigen::all);
    const Matrix e = in.error(tokens, Eigen::all);
    SequenceBound bound(x, e, in.exact, maps, problem.heads, problem.eps, model);
    bound.compute(y, y_error);
    out.value(tokens, Eigen::all) = y;
    out.error(tokens, Eigen::all) = y_error;
    bool inherited = false;  // every token of the sequence looks at every other
    for (Index l = 0; l < sequence.length && !in.unsteady.empty(); ++l)
      inherited = inherited || in.unsteady[sequence.first + l * sequence.step];
    for (Index l = 0; l < sequence.length; ++l)
      out.unsteady[sequence.first + l * sequence.step] = inherited || bound.anywhere()[l];
  }
  return out;
}

/// Infinity where there is no bound: also where the analysis itself met something that is not a number.
std::vector<double> in_c_order(const Matrix& error) {
  std::vector<double> result(error.data(), error.data() + error.size());
  for (double& bound : result)
    if (!(bound < infinity)) bound = infinity;
  return result;
}

}  // namespace

AxialBound axial_bound(const AxialProblem& problem, const Arithmetic& arithmetic) {
  const Model model = model_of(arithmetic);
  AxialBound bound;
  Tokens tokens;
  tokens.value = axial::load<double>(problem.x);
  tokens.error = Matrix::Zero(tokens.value.rows(), tokens.value.cols());
  if (problem.passes != AxialPasses::col) {
    tokens = bound_pass(tokens, problem.row, Sequences(problem, true), problem, model);
    bound.row = in_c_order(tokens.error);
    bound.row_unsteady = tokens.unsteady;
  }
  if (problem.passes != AxialPasses::row)
    tokens = bound_pass(tokens, problem.col, Sequences(problem, false), problem, model);
  bound.y = in_c_order(tokens.error);
  bound.y_unsteady = tokens.unsteady;
  return bound;
}

Matrix layer_norm_bound(const Matrix& x, const Weights<double>& weights, double eps,
                        const Arithmetic& arithmetic) {
  const Normalized normalized =
      layer_norm(x, Matrix::Zero(x.rows(), x.cols()), weights, eps, model_of(arithmetic));
  if (!normalized.bounded) return Matrix::Constant(x.rows(), x.cols(), infinity);
  return claims::outward * normalized.error;
}

Matrix attention_bound(const Matrix& Q, const Matrix& K, const Matrix& V, const Arithmetic& arithmetic) {
  const Model model = model_of(arithmetic);
  const Matrix z = Q * K.transpose() / std::sqrt(static_cast<double>(Q.cols()));
  const Matrix Q_size = Q.cwiseAbs();
  const Matrix K_size = K.cwiseAbs();
  const Matrix z_error = logit_rounding(Q_size * K_size.transpose(), Q_size, K_size, model);
  const AttentionBound bound =
      attention_error(attention(z, V), z, z_error, V, Matrix::Zero(V.rows(), V.cols()), model);
  return claims::outward * (bound.softmax_change + bound.quotient_error);
}

}  // namespace gaugeblock
