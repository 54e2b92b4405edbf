// Where each GPU variant was last run and judged, and whether its source is still the same.
#pragma once

#include <optional>
#include <string>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Digest of the variant's source and the project's headers it includes, when this program was built:
/// cmake/kernel_records.cmake says of what exactly. Empty when no file of gpu/ defines the variant.
std::string source_digest(Operation operation, const std::string& name);

/// What compiled the kernels of the backend cuda: "NVIDIA 13.0.88".
std::string cuda_compiler();

/// A run of a variant on a GPU that data/device holds.
struct LastSeen {
  std::string gpu;     ///< "NVIDIA H200"
  std::string driver;  ///< "580.159.04"
  std::string date;    ///< "2026-01-31", UTC
  bool current;        ///< the source was the one of this program
};

/// The last run that data/device knew of when this program was built.
std::optional<LastSeen> last_seen(Operation operation, const std::string& name);

}  // namespace gaugeblock
