// Problems, outputs and golden values as safetensors files.
//
// inputs      by their names; float32. recurrence: q, k, v, gate, beta, initial_state;
//             axial: x, row_norm.weight, row_norm.bias, row_qkv.weight, row_out.weight, row_out.bias,
//             col_norm.weight, …
// outputs     y and final_state, or y and (optionally) row; float32
// golden      expected.y, bound.y, sigma.y and so on for each output; float64
// metadata    gaugeblock.format = 1, .op, .case, .claim; axial: .heads, .eps, .passes, .dropout = 0;
//             recurrence: .gate_space = linear
//
// A file without metadata, as a user's own script saves it, is understood too: the operation follows from the
// names of its tensors, and only `heads` has to be given. Everything wrong with a file is an InputError of
// one line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/files/safetensors.h"

namespace gaugeblock {

/// The problem whose inputs `file` holds. Outputs and golden values beside them are left alone; a tensor of
/// any other name is refused. Throws InputError.
Problem read_problem(const SafetensorsFile& file);

/// The inputs and attributes of a problem, named by its case text.
SafetensorsFile problem_file(const Problem& problem);

/// The outputs in `file` of whoever solved `problem`: all of them, `row` when it is there.
/// Inputs and golden values beside them are left alone. Throws InputError.
Outputs read_outputs(const SafetensorsFile& file, const Problem& problem);

/// Adds outputs to a file.
void add_outputs(SafetensorsFile& file, const Outputs& outputs);

/// What a golden file says of one output, element by element in C order.
struct GoldenValues {
  std::vector<double> expected;  ///< the true value, rounded to float64
  std::vector<double> bound;     ///< proved bound of a float32 implementation; infinity where there is none
  std::vector<double> sigma;     ///< the likely limit / 8; infinity where there is none
};

/// By the name of the output.
using GoldenData = std::map<std::string, GoldenValues>;

/// The golden values in `file`: for each output all three tensors or none. Throws InputError.
GoldenData read_golden(const SafetensorsFile& file, const Problem& problem);

/// The id of the claim that the bounds of a golden file rest on; empty where the file does not say.
std::string golden_claim(const SafetensorsFile& file);

/// Adds golden values of the outputs of `problem` to a file.
void add_golden(SafetensorsFile& file, const GoldenData& golden, const Problem& problem);

}  // namespace gaugeblock
