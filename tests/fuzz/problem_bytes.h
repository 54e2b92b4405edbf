// All that reading a file from outside takes: what the fuzzer and the replay of the corpus run.
#pragma once

#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/files/safetensors.h"

namespace gaugeblock {

/// The problem of a file with everything beside it. Throws InputError.
inline Problem read_everything(const SafetensorsFile& file) {
  Problem problem = read_problem(file);
  read_golden(file, problem);
  return problem;
}

}  // namespace gaugeblock
