// Wrong forms of the recurrence: the definition, masked attention, chunks and the closed form, each written
// out once with a switch wherever one of the faults changes it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/reference/recurrence/problem.h"
#include "mutant.h"
#include "rounding.h"

namespace gaugeblock {
namespace {

using Matrix = recurrence::Matrix<float>;
using Vector = recurrence::Vector<float>;
using Outs = RecurrenceOutputs<float>;

constexpr float near_one = 0.9999F;  // gates above it are one in ten of gate=near_one, and rare elsewhere

enum class Fault {
  // the definition
  last_step_dropped,
  gate_of_previous_step,
  gate_of_next_step,
  rows_in_fours,
  columns_in_eights,
  gate_after_write,
  gate_after_write_near_one,
  reads_previous_state,
  reset_drops_its_write,
  first_gate_skipped,
  one_gate_skipped,
  gates_near_one_skipped,
  sign_of_gate_lost,
  state_ignored,
  state_ignored_for_one_batch,
  state_of_first_batch,
  state_transposed_when_square,
  empty_sequence_clears_state,
  state_left_from_last_head,
  state_left_from_last_batch,
  gate_clamped_from_below,
  gate_clamped_below_one,
  one_write_lost,
  beta_squared,
  beta_dropped,
  beta_of_previous_step,
  beta_clamped_to_one,
  sign_of_beta_lost,
  last_lane_dropped,
  lanes_behind_a_warp_dropped,
  last_head_with_gates_of_the_one_before,
  last_of_odd_heads_repeats,
  third_batch_repeats_second,
  gate_strides_ignored,
  q_with_pitch_of_v,
  initial_state_axes_swapped,
  q_and_k_swapped,
  q_in_11_bits,
  k_and_v_in_8_bits,
  state_in_half,
  q_in_19_bits,
  y_in_20_bits,
  nan_written,
  q_offset_in_15_bits,
  v_offset_in_15_bits,
  k_offset_in_15_bits,
  // masked attention
  own_gate_included,
  window_one_gate_short,
  newest_write_missing,
  beta_of_the_query_step,
  window_by_logarithms,
  // chunks
  decay_short_at_border,
  state_not_carried,
  carry_misses_ragged_chunk,
  first_step_written_twice,
  chunk_number_in_three_bits,
  first_chunk_state_one_gate_short,
  border_gate_near_one_skipped,
  // the closed form
  output_with_previous_product,
  divided_by_previous_product,
  never_restarted,
  product_clamped,
};

float element(const TensorView<const float, 4>& view, Index b, Index t, Index h, Index i, Index offset_mask) {
  const Index offset = b * view.stride[0] + t * view.stride[1] + h * view.stride[2] + i * view.stride[3];
  return view.data[offset & offset_mask];
}

Vector load_with_narrow_offset(const TensorView<const float, 4>& view, Index b, Index t, Index h, int bits) {
  Vector vector(view.shape[3]);
  for (Index i = 0; i < vector.size(); ++i) vector(i) = element(view, b, t, h, i, (Index{1} << bits) - 1);
  return vector;
}

/// What lies where a tensor without gaps would have element number `n`; never behind the view's last element.
template <int Rank>
float in_a_row(const TensorView<const float, Rank>& view, Index n) {
  Index reach = 0;
  for (int d = 0; d < Rank; ++d) reach += (view.shape[d] - 1) * view.stride[d];
  return view.data[std::clamp<Index>(n, 0, reach)];
}

/// The state before the first step, as the fault has it. `last` is what the (b,h) before left behind.
Matrix start_of(const RecurrenceProblem& p, Index b, Index h, Fault fault, const Matrix& last) {
  const Index B = p.batches(), H = p.heads();
  if (fault == Fault::state_of_first_batch) b = 0;
  if (fault == Fault::initial_state_axes_swapped) {  // [B,H] taken for [H,B]
    const Index at = h * B + b;
    b = at / H;
    h = at % H;
  }
  Matrix state = recurrence::load_initial_state<float>(p, b, h);
  if (fault == Fault::state_ignored) state.setZero();
  if (fault == Fault::state_ignored_for_one_batch && B == 1) state.setZero();
  if (fault == Fault::empty_sequence_clears_state && p.steps() == 0) state.setZero();
  if (fault == Fault::state_transposed_when_square && p.key_size() == p.value_size())
    state.transposeInPlace();
  const bool left = (fault == Fault::state_left_from_last_head && h > 0) ||
                    (fault == Fault::state_left_from_last_batch && h == 0);
  if (left && !p.initial_state && last.size() > 0) state = last;
  return state;
}

float gate_of(const RecurrenceProblem& p, Index b, Index t, Index h, Fault fault) {
  const Index T = p.steps(), H = p.heads();
  if (fault == Fault::gate_of_previous_step) t = std::max<Index>(t - 1, 0);
  if (fault == Fault::gate_of_next_step) t = std::min(t + 1, T - 1);
  if (fault == Fault::last_head_with_gates_of_the_one_before && h == H - 1) h = std::max<Index>(h - 1, 0);
  float gate = p.gate(b, t, h);
  if (fault == Fault::gate_strides_ignored) gate = in_a_row(p.gate, (b * T + t) * H + h);
  if (fault == Fault::first_gate_skipped && t == 0) gate = 1;
  if (fault == Fault::one_gate_skipped && t == T / 2) gate = 1;
  if (fault == Fault::gates_near_one_skipped && gate > near_one) gate = 1;
  if (fault == Fault::sign_of_gate_lost) gate = std::abs(gate);
  if (fault == Fault::gate_clamped_from_below) gate = std::max(gate, 1e-6F);
  if (fault == Fault::gate_clamped_below_one) gate = std::min(gate, 1 - 0x1p-20F);
  return gate;
}

float beta_of(const RecurrenceProblem& p, Index b, Index t, Index h, Fault fault) {
  if (fault == Fault::beta_of_previous_step) t = std::max<Index>(t - 1, 0);
  const float beta = p.beta(b, t, h);
  if (fault == Fault::beta_squared) return beta * beta;
  if (fault == Fault::beta_dropped) return 1;
  if (fault == Fault::beta_clamped_to_one) return std::min(beta, 1.0F);
  if (fault == Fault::sign_of_beta_lost) return std::abs(beta);
  if (fault == Fault::one_write_lost && t == p.steps() / 2) return 0;
  return beta;
}

void sequential(const RecurrenceProblem& p, const Outs& out, Fault fault) {
  const Index T = p.steps(), H = p.heads(), K = p.key_size(), V = p.value_size();
  Matrix last;
  for (Index b = 0; b < p.batches(); ++b)
    for (Index h = 0; h < H; ++h) {
      // The (b,h) whose inputs are read.
      const Index from_b = fault == Fault::third_batch_repeats_second && b >= 2 ? 1 : b;
      const Index from_h =
          fault == Fault::last_of_odd_heads_repeats && H % 2 == 1 && H > 1 && h == H - 1 ? h - 1 : h;
      Matrix state = start_of(p, from_b, from_h, fault, last);
      Vector y = Vector::Zero(V);
      for (Index t = 0; t < T; ++t) {
        const float gate = gate_of(p, from_b, t, from_h, fault);
        const float beta = beta_of(p, from_b, t, from_h, fault);
        Vector q = recurrence::load<float>(p.q, from_b, t, from_h);
        Vector k = recurrence::load<float>(p.k, from_b, t, from_h);
        Vector v = recurrence::load<float>(p.v, from_b, t, from_h);
        if (fault == Fault::q_and_k_swapped) q.swap(k);
        if (fault == Fault::q_with_pitch_of_v)
          for (Index i = 0; i < K; ++i) q(i) = in_a_row(p.q, ((b * T + t) * H + h) * V + i);
        if (fault == Fault::q_offset_in_15_bits) q = load_with_narrow_offset(p.q, b, t, h, 15);
        if (fault == Fault::v_offset_in_15_bits) v = load_with_narrow_offset(p.v, b, t, h, 15);
        if (fault == Fault::k_offset_in_15_bits) k = load_with_narrow_offset(p.k, b, t, h, 15);
        if (fault == Fault::q_in_11_bits) q = rounded(q, 11);
        if (fault == Fault::q_in_19_bits) q = rounded(q, 19);
        if (fault == Fault::k_and_v_in_8_bits) k = rounded(k, 8), v = rounded(v, 8);

        const Matrix before = state;
        const Matrix write = (beta * k) * v.transpose();
        state = gate * before + write;
        if (fault == Fault::gate_after_write ||
            (fault == Fault::gate_after_write_near_one && gate > near_one))
          state = gate * (before + write);
        if (fault == Fault::reset_drops_its_write && gate == 0) state.setZero();
        if (fault == Fault::last_step_dropped && t == T - 1) state = before;
        if (fault == Fault::state_in_half) state = in_half(state);

        Index rows = K;  // of the sum
        if (fault == Fault::last_lane_dropped) rows = K - 1;
        if (fault == Fault::lanes_behind_a_warp_dropped) rows = std::min<Index>(K, 32);
        if (fault == Fault::rows_in_fours && K > 4) rows = K - K % 4;
        const Matrix& read = fault == Fault::reads_previous_state ? before : state;
        y = read.topRows(rows).transpose() * q.head(rows);
        if (fault == Fault::y_in_20_bits) y = rounded(y, 20);
        if (fault == Fault::columns_in_eights && V > 8) y.tail(V % 8).setZero();
        if (fault == Fault::nan_written && t == T - 1) y(V - 1) = std::nanf("");
        recurrence::store_output<float>(out, b, t, h, y);
      }
      recurrence::store_final_state<float>(out, b, h, state);
      last = state;
    }
}

/// exp(log |gate_{first}| + … + log |gate_{last}|), summed from the start of the sequence: what forms that
/// work with cumulative logarithms do. A gate of 0 makes it -inf - (-inf).
float by_logarithms(const RecurrenceProblem& p, Index b, Index h, Index first, Index last) {
  float upto = 0, before = 0;
  for (Index r = 0; r <= last; ++r) {
    if (r == first) before = upto;
    upto += std::log(std::abs(p.gate(b, r, h)));
  }
  return first > last ? 1.0F : std::exp(upto - before);
}

void masked_attention(const RecurrenceProblem& p, const Outs& out, Fault fault) {
  const auto window = [&](Index b, Index h, Index s, Index t) {  // Π_{r=s+1..t} gate_r
    if (fault == Fault::window_by_logarithms) return by_logarithms(p, b, h, s + 1, t);
    const Index first = fault == Fault::own_gate_included ? s : s + 1;
    const Index last = fault == Fault::window_one_gate_short ? t - 1 : t;
    float decay = 1;
    for (Index r = last; r >= first; --r) decay *= p.gate(b, std::max<Index>(r, 0), h);
    return decay;
  };
  for (Index b = 0; b < p.batches(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      const Matrix initial = recurrence::load_initial_state<float>(p, b, h);
      Matrix state = Matrix::Zero(p.key_size(), p.value_size());
      for (Index t = 0; t < p.steps(); ++t) {
        const Vector q = recurrence::load<float>(p.q, b, t, h);
        Vector y = Vector::Zero(p.value_size());
        for (Index s = fault == Fault::newest_write_missing ? t - 1 : t; s >= 0; --s) {
          const float beta = p.beta(b, fault == Fault::beta_of_the_query_step ? t : s, h);
          const float score = (q.transpose() * recurrence::load<float>(p.k, b, s, h)).value();
          y += (window(b, h, s, t) * beta * score) * recurrence::load<float>(p.v, b, s, h);
        }
        if (p.initial_state) y += window(b, h, -1, t) * (initial.transpose() * q);
        recurrence::store_output<float>(out, b, t, h, y);
      }
      const Index end = p.steps() - 1;
      for (Index s = end; s >= 0; --s)
        state += (window(b, h, s, end) * p.beta(b, s, h) * recurrence::load<float>(p.k, b, s, h)) *
                 recurrence::load<float>(p.v, b, s, h).transpose();
      if (p.initial_state) state += window(b, h, -1, end) * initial;
      recurrence::store_final_state<float>(out, b, h, state);
    }
}

void chunked(const RecurrenceProblem& p, const Outs& out, Fault fault) {
  constexpr Index chunk = 16;  // recurrence::default_chunk, whose rounding errors the claim counts
  for (Index b = 0; b < p.batches(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      std::vector<Matrix> starts{recurrence::load_initial_state<float>(p, b, h)};  // states before the chunks
      Matrix final_state = starts.front();
      for (Index start = 0; start < p.steps(); start += chunk) {
        const Index end = std::min(start + chunk, p.steps());
        const auto gate = [&](Index t) {
          const float g = p.gate(b, t, h);
          if (fault == Fault::decay_short_at_border && t == start && t > 0) return 1.0F;
          if (fault == Fault::border_gate_near_one_skipped && t == start && g > near_one) return 1.0F;
          return g;
        };
        Index number = start / chunk;
        if (fault == Fault::chunk_number_in_three_bits) number %= 8;
        Matrix state = starts[number];
        if (fault == Fault::state_not_carried && start > 0) state.setZero();
        Matrix writes = Matrix::Zero(p.key_size(), p.value_size());
        for (Index t = start; t < end; ++t) {
          const Vector q = recurrence::load<float>(p.q, b, t, h);
          Vector y = Vector::Zero(p.value_size());
          float decay = 1;
          for (Index s = t; s >= start; --s) {
            const float score = (q.transpose() * recurrence::load<float>(p.k, b, s, h)).value();
            y += (decay * p.beta(b, s, h) * score) * recurrence::load<float>(p.v, b, s, h);
            if (fault == Fault::first_chunk_state_one_gate_short && s == 0) continue;
            decay *= gate(s);
          }
          y += decay * (state.transpose() * q);
          recurrence::store_output<float>(out, b, t, h, y);
        }
        float decay = 1;
        for (Index s = end - 1; s >= start; --s) {
          const float twice = fault == Fault::first_step_written_twice && s == start && s > 0 ? 2.0F : 1.0F;
          writes += (twice * decay * p.beta(b, s, h) * recurrence::load<float>(p.k, b, s, h)) *
                    recurrence::load<float>(p.v, b, s, h).transpose();
          if (fault == Fault::first_chunk_state_one_gate_short && s == 0) continue;
          decay *= gate(s);
        }
        starts.push_back(decay * state + writes);
        if (fault != Fault::carry_misses_ragged_chunk || end - start == chunk) final_state = starts.back();
      }
      recurrence::store_final_state<float>(out, b, h, final_state);
    }
}

void prefix_product(const RecurrenceProblem& p, const Outs& out, Fault fault) {
  for (Index b = 0; b < p.batches(); ++b)
    for (Index h = 0; h < p.heads(); ++h) {
      Matrix w = recurrence::load_initial_state<float>(p, b, h);
      float product = 1;
      recurrence::PrefixSegments segments(p, b, h);
      for (Index t = 0; t < p.steps(); ++t) {
        using Step = recurrence::PrefixSegments::Step;
        const Vector q = recurrence::load<float>(p.q, b, t, h);
        const Matrix write = p.beta(b, t, h) * recurrence::load<float>(p.k, b, t, h) *
                             recurrence::load<float>(p.v, b, t, h).transpose();
        const Step step = fault == Fault::never_restarted || fault == Fault::product_clamped
                              ? Step::extend
                              : segments.advance(t);
        if (step != Step::extend) {
          w *= product;
          product = 1;
        }
        const float before = product;
        if (step == Step::restart_and_define) {
          w = p.gate(b, t, h) * w + write;
        } else {
          product *= p.gate(b, t, h);
          if (fault == Fault::product_clamped) product = std::max(product, 1e-30F);
          w += write / (fault == Fault::divided_by_previous_product ? before : product);
        }
        const float factor = fault == Fault::output_with_previous_product ? before : product;
        recurrence::store_output<float>(out, b, t, h, factor * (w.transpose() * q));
      }
      recurrence::store_final_state<float>(out, b, h, product * w);
    }
}

struct Row {
  Fault fault;
  std::string id;
  Kind kind;
  std::string summary;
  std::string seen;
  std::string needs;
  bool hides = false;
};

constexpr bool hides = true;

}  // namespace

std::vector<Mutant> recurrence_form_mutants() {
  struct Form {
    std::string form;  // whose rounding errors it has
    void (*run)(const RecurrenceProblem&, const Outs&, Fault);
    std::vector<Row> rows;
  };
  const std::vector<Form> forms{
      {"sequential",
       sequential,
       {
           {Fault::last_step_dropped, "last_step_dropped", Kind::indexing, "the last step writes nothing",
            "operator", "T >= 1"},
           {Fault::rows_in_fours, "rows_in_fours", Kind::indexing,
            "the sum over K goes in fours and leaves out the rest", "operator", "K > 4, K % 4 != 0", hides},
           {Fault::columns_in_eights, "columns_in_eights", Kind::indexing,
            "columns behind the last full eight stay 0", "operator", "V > 8, V % 8 != 0", hides},
           {Fault::gate_of_previous_step, "gate_of_previous_step", Kind::prefix,
            "step t takes the gate of t - 1", "operator", "T >= 2, a state before it"},
           {Fault::gate_of_next_step, "gate_of_next_step", Kind::prefix, "step t takes the gate of t + 1",
            "fla-org/flash-linear-attention (simple_gla, parallel)", "T >= 2, a state before it"},
           {Fault::first_gate_skipped, "first_gate_skipped", Kind::prefix,
            "the first gate is left out, which only an initial state can tell", "operator",
            "an initial state, T >= 1", hides},
           {Fault::one_gate_skipped, "one_gate_skipped", Kind::prefix, "the gate of one step is left out",
            "operator", "T >= 2"},
           {Fault::gates_near_one_skipped, "gates_near_one_skipped", Kind::prefix,
            "gates above 0.9999 count as 1", "operator", "a gate in (0.9999, 1)", hides},
           {Fault::sign_of_gate_lost, "sign_of_gate_lost", Kind::prefix,
            "gates go through the logarithm of their magnitude", "operator", "a negative gate", hides},
           {Fault::gate_after_write, "gate_after_write", Kind::gate_order,
            "the gate is applied after the write", "operator", "T >= 1, a gate that is not 1"},
           {Fault::reads_previous_state, "reads_previous_state", Kind::gate_order,
            "y_t is taken from S_{t-1}", "operator", "T >= 1"},
           {Fault::gate_after_write_near_one, "gate_after_write_near_one", Kind::gate_order,
            "the gate is applied after the write where it is above 0.9999", "operator",
            "a gate in (0.9999, 1)", hides},
           {Fault::reset_drops_its_write, "reset_drops_its_write", Kind::gate_order,
            "a gate of 0 clears the state after the write instead of before",
            "fla-org/flash-linear-attention#20", "a gate of 0", hides},
           {Fault::state_ignored, "state_ignored", Kind::carry_in, "the initial state is taken as zero",
            "operator", "an initial state", hides},
           {Fault::state_ignored_for_one_batch, "state_ignored_for_one_batch", Kind::carry_in,
            "the initial state is ignored when B = 1", "vllm-project/vllm#22034", "an initial state, B = 1",
            hides},
           {Fault::state_of_first_batch, "state_of_first_batch", Kind::carry_in,
            "every batch starts from the state of the first", "operator", "an initial state, B >= 2", hides},
           {Fault::empty_sequence_clears_state, "empty_sequence_clears_state", Kind::carry_in,
            "the final state of an empty sequence is zero", "fla-org/flash-linear-attention#88",
            "an initial state, T = 0", hides},
           {Fault::state_left_from_last_head, "state_left_from_last_head", Kind::reset,
            "without an initial state a head starts from what the one before left", "operator", "H >= 2"},
           {Fault::state_left_from_last_batch, "state_left_from_last_batch", Kind::reset,
            "without an initial state a batch starts from what the one before left", "operator", "B >= 2"},
           {Fault::gate_clamped_from_below, "gate_clamped_from_below", Kind::reset,
            "gates are at least 1e-6, so that a reset keeps a millionth", "pytorch/executorch#21417",
            "a gate below 1e-6", hides},
           {Fault::gate_clamped_below_one, "gate_clamped_below_one", Kind::reset,
            "gates are at most 1 - 2^-20, a guard of the logarithm of 1 - gate",
            "fla-org/flash-linear-attention#104", "gates of 1, some tens of steps", hides},
           {Fault::one_write_lost, "one_write_lost", Kind::beta, "beta of one step is taken as 0", "operator",
            "T >= 1"},
           {Fault::beta_squared, "beta_squared", Kind::beta, "k and v are both scaled by beta", "operator",
            "a beta other than 0 and 1"},
           {Fault::beta_dropped, "beta_dropped", Kind::beta, "beta is not applied", "operator",
            "a beta other than 1"},
           {Fault::beta_of_previous_step, "beta_of_previous_step", Kind::beta,
            "step t takes the beta of t - 1", "operator", "T >= 2, betas that differ"},
           {Fault::beta_clamped_to_one, "beta_clamped_to_one", Kind::beta, "beta is at most 1", "operator",
            "a beta above 1", hides},
           {Fault::sign_of_beta_lost, "sign_of_beta_lost", Kind::beta, "the sign of beta is lost", "operator",
            "a negative beta", hides},
           {Fault::last_lane_dropped, "last_lane_dropped", Kind::last_element,
            "the last of the K products is left out of the sum", "operator", "T >= 1"},
           {Fault::lanes_behind_a_warp_dropped, "lanes_behind_a_warp_dropped", Kind::last_element,
            "only the first 32 of the K products are added", "operator", "K > 32", hides},
           {Fault::last_head_with_gates_of_the_one_before, "last_head_with_gates_of_the_one_before",
            Kind::last_element, "the last head takes the gates of the one before", "operator", "H >= 2"},
           {Fault::last_of_odd_heads_repeats, "last_of_odd_heads_repeats", Kind::last_element,
            "heads go in pairs: the last of an odd number repeats the one before", "operator",
            "H odd, H >= 3", hides},
           {Fault::third_batch_repeats_second, "third_batch_repeats_second", Kind::last_element,
            "batches from the third on repeat the second", "operator", "B >= 3", hides},
           {Fault::gate_strides_ignored, "gate_strides_ignored", Kind::axis,
            "gates are read as if they had no gaps", "state-spaces/mamba#537", "strided gates", hides},
           {Fault::q_with_pitch_of_v, "q_with_pitch_of_v", Kind::axis,
            "rows of q are found with the length of those of v", "operator", "K != V", hides},
           {Fault::initial_state_axes_swapped, "initial_state_axes_swapped", Kind::axis,
            "the initial state's [B,H] is taken for [H,B]", "operator", "an initial state, B >= 2, H >= 2",
            hides},
           {Fault::state_transposed_when_square, "state_transposed_when_square", Kind::axis,
            "the initial state is taken as [V,K], which only K = V lets happen", "operator",
            "an initial state, K = V >= 2", hides},
           {Fault::q_and_k_swapped, "q_and_k_swapped_in_recurrence", Kind::axis, "q and k are exchanged",
            "operator", "T >= 2"},
           {Fault::q_in_11_bits, "q_in_11_bits", Kind::precision, "q is rounded to 11 bits, as TF32 has",
            "operator", "T >= 1"},
           {Fault::k_and_v_in_8_bits, "k_and_v_in_8_bits", Kind::precision,
            "k and v are rounded to 8 bits, as bfloat16 has", "operator", "T >= 1"},
           {Fault::state_in_half, "state_in_half", Kind::precision, "the state is kept in float16",
            "operator", "T >= 1"},
           {Fault::q_in_19_bits, "q_in_19_bits", Kind::precision, "q keeps 19 bits", "operator", "T >= 1",
            hides},
           {Fault::y_in_20_bits, "y_in_20_bits", Kind::precision, "y keeps 20 bits", "operator", "T >= 1",
            hides},
           {Fault::nan_written, "nan_written", Kind::unwritten, "the last element of a head's y is NaN",
            "operator", "T >= 1"},
           {Fault::q_offset_in_15_bits, "q_offset_in_15_bits", Kind::narrow_offset,
            "offsets of q lose their bits from 2^15 on, as 32 bits lose those from 2^31 on",
            "fla-org/flash-linear-attention#1080", "q of more than 2^15 elements", hides},
           {Fault::v_offset_in_15_bits, "v_offset_in_15_bits", Kind::narrow_offset,
            "offsets of v lose their bits from 2^15 on", "fla-org/flash-linear-attention#1080",
            "v of more than 2^15 elements", hides},
           {Fault::k_offset_in_15_bits, "k_offset_in_15_bits", Kind::narrow_offset,
            "offsets of k lose their bits from 2^15 on", "fla-org/flash-linear-attention#1080",
            "k of more than 2^15 elements", hides},
       }},
      {"masked_attention",
       masked_attention,
       {
           {Fault::own_gate_included, "own_gate_included", Kind::gate_order,
            "the window of gates begins with the step's own", "operator", "T >= 1, a gate that is not 1"},
           {Fault::window_one_gate_short, "window_one_gate_short", Kind::prefix,
            "the window of gates ends one step early", "operator", "T >= 2"},
           {Fault::newest_write_missing, "newest_write_missing", Kind::prefix,
            "the mask is s < t instead of s <= t", "operator", "T >= 1"},
           {Fault::beta_of_the_query_step, "beta_of_the_query_step", Kind::beta,
            "beta is taken at t instead of s", "operator", "T >= 2, betas that differ"},
           {Fault::window_by_logarithms, "window_by_logarithms", Kind::reset,
            "windows are differences of cumulative logarithms: NaN behind a gate of 0",
            "fla-org/flash-linear-attention#20", "a gate of 0; or long sequences"},
       }},
      {"chunked",
       chunked,
       {
           {Fault::decay_short_at_border, "decay_short_at_border", Kind::chunk_border,
            "the decay is one gate short at the border of a chunk", "operator", "T > 16"},
           {Fault::state_not_carried, "state_not_carried", Kind::chunk_border,
            "every chunk but the first starts from zero", "operator", "T > 16"},
           {Fault::carry_misses_ragged_chunk, "carry_misses_ragged_chunk", Kind::chunk_border,
            "the final state is that of the last full chunk", "state-spaces/mamba#352", "T % 16 != 0", hides},
           {Fault::first_step_written_twice, "first_step_written_twice", Kind::chunk_border,
            "the carried state counts the first step of a chunk twice", "operator", "T > 16"},
           {Fault::chunk_number_in_three_bits, "chunk_number_in_three_bits", Kind::chunk_border,
            "the ninth chunk starts from the state of the first", "operator", "T > 128", hides},
           {Fault::first_chunk_state_one_gate_short, "first_chunk_state_one_gate_short", Kind::chunk_border,
            "the initial state misses the first gate", "operator", "an initial state, T >= 1", hides},
           {Fault::border_gate_near_one_skipped, "border_gate_near_one_skipped", Kind::chunk_border,
            "a chunk's first gate counts as 1 where it is above 0.9999", "operator",
            "a gate in (0.9999, 1) at the start of a chunk", hides},
       }},
      {"prefix_product_segmented",
       prefix_product,
       {
           {Fault::output_with_previous_product, "output_with_previous_product", Kind::prefix,
            "y_t is multiplied by P_{t-1}", "operator", "T >= 1, a gate that is not 1"},
           {Fault::divided_by_previous_product, "divided_by_previous_product", Kind::prefix,
            "the write of step t is divided by P_{t-1}", "operator", "T >= 1, a gate that is not 1"},
           {Fault::never_restarted, "never_restarted", Kind::rescale,
            "the closed form is never restarted, and divides by 0", "pytorch/executorch#21417",
            "a product of gates below 2^-149"},
           {Fault::product_clamped, "product_clamped", Kind::rescale,
            "the product of gates is at least 1e-30, a guard of the division", "pytorch/executorch#21417",
            "a product of gates below 1e-30"},
       }},
  };
  std::vector<Mutant> mutants;
  for (const Form& form : forms)
    for (const Row& row : form.rows)
      mutants.push_back(form_mutant(
          Operation::recurrence, form.form, row.id, row.kind, row.summary, row.seen, row.needs, row.hides,
          [run = form.run, fault = row.fault](const Problem& problem, Outputs& outputs) {
            run(recurrence_view(problem), recurrence_view(outputs), fault);
          }));
  return mutants;
}

}  // namespace gaugeblock
