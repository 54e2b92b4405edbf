// Golden files: problems with the true value and the allowed error of every element, for ports in any
// language.
//
// A folder holds one safetensors file a case and index.json, which lists them: id, file, op, case, flags
// (each explained once in the same file), source, SHA-256. Only this program writes them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gaugeblock/verify/golden/golden_cases.h"

namespace gaugeblock {

/// Called before each file with how many are done, how many there are, and the id of the one at hand; and
/// once more with no id when all are done.
using GoldenProgress = std::function<void(std::size_t done, std::size_t all, const std::string& id)>;

/// Writes the golden file of every case and the index into `folder`, which is made when it is missing.
/// Throws InputError when something cannot be written, or when other files lie there.
void write_golden(const std::filesystem::path& folder, const GoldenProgress& progress = {},
                  const std::vector<GoldenCase>& cases = golden_cases());

struct GoldenReport {
  std::size_t files = 0;  ///< how many were checked
  std::vector<std::string>
      differences;  ///< one line each: file, tensor, element, what was expected and found
};

/// Computes every golden file again and compares. Metadata and inputs: the same bytes; expected values:
/// within 2^-52 relative; bounds and sigmas: within 1e-9 relative, because they use the host's libm. Throws
/// InputError when the folder or its index cannot be read.
GoldenReport check_golden(const std::filesystem::path& folder, const GoldenProgress& progress = {},
                          const std::vector<GoldenCase>& cases = golden_cases());

}  // namespace gaugeblock
