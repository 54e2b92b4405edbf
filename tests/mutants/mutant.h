// Mutants: deliberately wrong variants. What a check is worth is what it does with them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// What kind of fault it is.
enum class Kind {
  indexing,          ///< an index, a tail, a read or write beside the tensor
  gate_order,        ///< gate, write and read in the wrong order
  prefix,            ///< a window or prefix of gates that begins or ends one step off
  carry_in,          ///< the initial state
  reset,             ///< what must not survive a batch, a head or a gate of zero
  beta,              ///< beta squared, dropped, or of another step
  chunk_border,      ///< where one chunk hands over to the next
  last_element,      ///< the last lane, row, column, head or batch
  axis,              ///< the wrong axis or stride
  rescale,           ///< a maximum, a rescaling or a restart that keeps exponents in range
  divisor,           ///< eps and the divisors of LayerNorm and softmax
  precision,         ///< fewer bits than float32 has
  synchronisation,   ///< barriers, masks, reuse of shared memory
  unwritten,         ///< memory that is read or returned though nothing wrote it
  silent_launch,     ///< a launch that is refused, and nobody looks
  aliasing,          ///< an input used as scratch, an output over an input
  nondeterministic,  ///< other bits on another run
  narrow_offset,     ///< an offset in too few bits
  cheat,             ///< no computation at all, or only where it is expected to be looked at
};
inline constexpr int kind_count = static_cast<int>(Kind::cheat) + 1;

/// "gate order": for tables.
std::string_view name(Kind kind);

struct Mutant {
  Variant variant;  ///< variant.name is the mutant's id; unique over both operations
  Kind kind{};
  std::string seen;   ///< the report of such a fault ("owner/repository#number"), or "operator"
  std::string needs;  ///< the least condition that exposes it
  /// Made so that the proved bound does not show it on inputs as people usually draw them.
  bool hides = false;
  /// Kernels: what a GPU that gets away with it would return. The same launch, with the interpreter's reports
  /// ignored and under the schedule that suits the fault. For other checkers, which see outputs alone.
  std::function<void(const Problem&, Outputs&)> unwatched;
};

/// Every mutant, by operation and backend.
const std::vector<Mutant>& all_mutants();

// The lists that make it up.
std::vector<Mutant> recurrence_form_mutants();
std::vector<Mutant> axial_form_mutants();
std::vector<Mutant> run_mutants();
std::vector<Mutant> kernel_mutants();

/// A mutant of a CPU form whose fault is in `run`. `form` is the reference form it would be without the
/// fault.
Mutant form_mutant(Operation operation, const std::string& form, std::string id, Kind kind, std::string fault,
                   std::string seen, std::string needs, bool hides,
                   std::function<void(const Problem&, Outputs&)> run);

}  // namespace gaugeblock
