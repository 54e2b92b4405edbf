// The truth about a problem and how far a correct float32 implementation may be from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Answers about one problem. Every vector has one value per element of the output, in C order.
/// Nothing here ever sees a variant's output.
class Oracle {
 public:
  virtual ~Oracle() = default;

  /// The true value, rounded to float64 (the rounding is part of both limits).
  virtual const std::vector<double>& expected(const std::string& output) = 0;

  /// The proved bound on |actual - expected| for this arithmetic; infinity where there is none.
  virtual const std::vector<double>& proved(const std::string& output, const Arithmetic& arithmetic) = 0;

  /// The claims that bound an output for this arithmetic, by their ids in proofs_notes/README.md; at least
  /// one.
  virtual std::vector<std::string> claims_about(const std::string& output,
                                                const Arithmetic& arithmetic) const = 0;

  /// The proved bound by one of those claims alone; `proved` is the smallest of them, element by element.
  /// Throws std::logic_error for another claim.
  virtual std::vector<double> proved_by(const std::string& claim, const std::string& output,
                                        const Arithmetic& arithmetic) = 0;

  /// The claim that proved(output, arithmetic)[element] rests on.
  std::string claim(const std::string& output, const Arithmetic& arithmetic, Index element);

  /// The likely limit on |actual - expected| for this arithmetic; infinity where there is none.
  virtual const std::vector<double>& likely(const std::string& output, const Arithmetic& arithmetic) = 0;
};

/// How the true value is computed.
enum class Truth {
  automatic,       ///< at least 160 bits for small problems, long double (its error added to the bounds) for
                   ///< others
  high_precision,  ///< at least 160 bits
};

/// The oracle of a problem. The problem must outlive it.
std::unique_ptr<Oracle> make_oracle(const Problem& problem, Truth truth = Truth::automatic);

}  // namespace gaugeblock
