// A problem of the harness: named tensors and attributes, whatever the operation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gaugeblock/reference/axial/problem.h"
#include "gaugeblock/reference/recurrence/problem.h"
#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {

enum class Operation { recurrence, axial };

std::string_view name(Operation operation);
/// Throws InputError for an unknown name.
Operation parse_operation(std::string_view text);

/// What an operation needs beside its tensors.
struct Attributes {
  Index heads = 1;                         ///< axial
  float eps = 1e-5F;                       ///< axial
  AxialPasses passes = AxialPasses::both;  ///< axial
};

std::string_view name(AxialPasses passes);
AxialPasses parse_passes(std::string_view text);

/// Inputs by their file names (recurrence: q, k, v, gate, beta, initial_state; axial: x, row_norm.weight, …).
struct Problem {
  Operation operation = Operation::recurrence;
  std::map<std::string, Tensor> inputs;
  Attributes attributes;
  std::string case_text;  ///< the case that made it; empty when it came from a file

  const Tensor& input(const std::string& name) const { return inputs.at(name); }
};

/// Outputs by their file names: y and final_state, or y and (optionally) row.
using Outputs = std::map<std::string, Tensor>;

/// Throws InputError when the reference has no room for the scores of the longest sequence of the passes.
void require_score_memory(Index height, Index width, AxialPasses passes);

/// Checks names and shapes of a problem that came from outside. Throws InputError naming the tensor.
void check_problem(const Problem& problem);

/// Shapes of all outputs of a problem, by name. `row` is listed for axial problems with both passes.
std::map<std::string, std::vector<Index>> output_shapes(const Problem& problem);

/// Poisoned contiguous outputs between guard bands. `row` is left out unless asked for.
Outputs make_outputs(const Problem& problem, bool with_row = false);

RecurrenceProblem recurrence_view(const Problem& problem);
RecurrenceOutputs<float> recurrence_view(Outputs& outputs);
AxialProblem axial_view(const Problem& problem);
AxialOutputs<float> axial_view(Outputs& outputs);

/// Sizes in words, for messages: "B=2,T=128,H=4,K=24,V=24".
std::string sizes_text(const Problem& problem);

}  // namespace gaugeblock
