// Two steps of the recurrence by the definition.
#include <gaugeblock/reference/recurrence/sequential.h>

#include <vector>

int main() {
  const std::vector<float> q{10, 1}, k{1, 5}, v{1, 2}, gate{0.5F, 3}, beta{1, 2};
  std::vector<double> y(2), state(1);
  using gaugeblock::contiguous_view;
  gaugeblock::RecurrenceProblem problem;
  problem.q = contiguous_view<const float, 4>(q.data(), {1, 2, 1, 1});
  problem.k = contiguous_view<const float, 4>(k.data(), {1, 2, 1, 1});
  problem.v = contiguous_view<const float, 4>(v.data(), {1, 2, 1, 1});
  problem.gate = contiguous_view<const float, 3>(gate.data(), {1, 2, 1});
  problem.beta = contiguous_view<const float, 3>(beta.data(), {1, 2, 1});
  gaugeblock::recurrence::sequential<double>(problem,
                                             {contiguous_view<double, 4>(y.data(), {1, 2, 1, 1}),
                                              contiguous_view<double, 4>(state.data(), {1, 1, 1, 1})});
  return y[0] == 10 && y[1] == 23 ? 0 : 1;  // S = 1, then 3·1 + 2·5·2 = 23
}
