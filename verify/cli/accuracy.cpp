#include "gaugeblock/verify/cli/accuracy.h"

#include <cmath>

#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/reference/recurrence/sequential.h"

namespace gaugeblock {
namespace {

/// The part of a tensor whose subscript is 0 in the first dimension, and in the third as well when `one_head`.
template <class T, int Rank>
TensorView<T, Rank> first_of(TensorView<T, Rank> tensor, bool one_head) {
  tensor.shape[0] = 1;
  if (one_head) tensor.shape[2] = 1;
  return tensor;
}

template <class Scalar>
std::vector<Scalar> definition(const RecurrenceProblem& whole) {
  RecurrenceProblem part = whole;
  part.q = first_of(whole.q, true);
  part.k = first_of(whole.k, true);
  part.v = first_of(whole.v, true);
  part.gate = first_of(whole.gate, true);
  part.beta = first_of(whole.beta, true);
  if (whole.initial_state) {  // [B,H,K,V]
    part.initial_state = first_of(*whole.initial_state, false);
    part.initial_state->shape[1] = 1;
  }
  const Index K = part.key_size(), V = part.value_size();
  std::vector<Scalar> y(static_cast<std::size_t>(part.steps() * V));
  std::vector<Scalar> state(static_cast<std::size_t>(K * V));
  recurrence::sequential<Scalar>(part, {contiguous_view<Scalar, 4>(y.data(), {1, part.steps(), 1, V}),
                                        contiguous_view<Scalar, 4>(state.data(), {1, 1, K, V})});
  return y;
}

template <class Scalar>
std::vector<Scalar> definition(const AxialProblem& whole) {
  AxialProblem part = whole;
  part.x = first_of(whole.x, false);
  const auto& shape = part.x.shape;
  std::vector<Scalar> y(static_cast<std::size_t>(shape[1] * shape[2] * shape[3]));
  axial::unfused<Scalar>(part, {contiguous_view<Scalar, 4>(y.data(), shape), std::nullopt});
  return y;
}

template <class Scalar>
std::vector<Scalar> definition(const Problem& problem) {
  return problem.operation == Operation::recurrence ? definition<Scalar>(recurrence_view(problem))
                                                    : definition<Scalar>(axial_view(problem));
}

double relative_error(const std::vector<float>& actual, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (std::size_t e = 0; e < expected.size(); ++e) {
    difference += (actual[e] - expected[e]) * (actual[e] - expected[e]);
    size += expected[e] * expected[e];
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

}  // namespace

Accuracy::Accuracy(const Problem& problem)
    : operation_(problem.operation),
      expected_(definition<double>(problem)),
      float32_error_(relative_error(definition<float>(problem), expected_)) {}

double Accuracy::error_of(const Outputs& outputs) const {
  const TensorView<const float, 4> y =
      first_of(outputs.at("y").view<4>(), operation_ == Operation::recurrence);
  std::vector<float> actual;
  actual.reserve(expected_.size());
  for (Index i = 0; i < y.shape[1]; ++i)
    for (Index j = 0; j < y.shape[2]; ++j)
      for (Index c = 0; c < y.shape[3]; ++c) actual.push_back(y(0, i, j, c));
  return relative_error(actual, expected_);
}

}  // namespace gaugeblock
