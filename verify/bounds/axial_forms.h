// The reference forms of the axial block in the scalar types of the oracle, each compiled once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gaugeblock/reference/axial/problem.h"

namespace gaugeblock {

/// Outputs in any scalar type, in C order; `row` is empty unless both passes run.
template <class Scalar>
struct AxialBuffers {
  std::vector<Scalar> y;
  std::vector<Scalar> row;
  AxialOutputs<Scalar> view;

  explicit AxialBuffers(const AxialProblem& problem) {
    const auto [B, H, W, D] = problem.x.shape;
    y.resize(static_cast<std::size_t>(B * H * W * D));
    view.y = contiguous_view<Scalar, 4>(y.data(), problem.x.shape);
    if (problem.passes != AxialPasses::both) return;
    row.resize(y.size());
    view.row = contiguous_view<Scalar, 4>(row.data(), problem.x.shape);
  }
};

/// Runs the form of that name. Defined for float, FusedFloat and MonteCarlo.
/// Throws std::logic_error when no form has that name.
template <class Scalar>
void run_axial_form(const std::string& form, const AxialProblem& problem, const AxialOutputs<Scalar>& out);

/// The true outputs by name, rounded to float64: by the definition, in long double or in at least 160 bits.
std::map<std::string, std::vector<double>> axial_truth(const AxialProblem& problem, bool high_precision);

}  // namespace gaugeblock
