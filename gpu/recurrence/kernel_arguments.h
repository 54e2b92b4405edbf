// What a recurrence kernel is given: device views of every tensor. No CUDA and no Eigen, so that any host
// code can fill it in.
//
//     S_t = gate_t · S_{t-1} + beta_t · k_t v_tᵀ        y_t = q_tᵀ S_t        t = 0 … T-1
#pragma once

#include <optional>

#include "gaugeblock/reference/tensor_view.h"

namespace gaugeblock::gpu {

/// Device pointers with shapes and strides in elements. B, H, K, V >= 1; T >= 0. Inputs may have strides of
/// 0; outputs overlap nothing, neither themselves nor inputs.
struct RecurrenceArguments {
  TensorView<const float, 4> q;                             ///< [B,T,H,K]
  TensorView<const float, 4> k;                             ///< [B,T,H,K]
  TensorView<const float, 4> v;                             ///< [B,T,H,V]
  TensorView<const float, 3> gate;                          ///< [B,T,H]
  TensorView<const float, 3> beta;                          ///< [B,T,H]
  std::optional<TensorView<const float, 4>> initial_state;  ///< [B,H,K,V]; zero when absent
  TensorView<float, 4> y;                                   ///< [B,T,H,V]
  TensorView<float, 4> final_state;                         ///< [B,H,K,V]

  Index batches() const { return v.shape[0]; }
  Index steps() const { return v.shape[1]; }
  Index heads() const { return v.shape[2]; }
  Index key_size() const { return q.shape[3]; }
  Index value_size() const { return v.shape[3]; }
};

/// From the harness's own structures (RecurrenceProblem, RecurrenceOutputs<float>), when their pointers are a
/// device's.
template <class Problem, class Outputs>
RecurrenceArguments recurrence_arguments(const Problem& problem, const Outputs& outputs) {
  return {problem.q, problem.k,          problem.v, problem.gate, problem.beta, problem.initial_state,
          outputs.y, outputs.final_state};
}

}  // namespace gaugeblock::gpu
