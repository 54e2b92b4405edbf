// A variant: one way to compute an operation, on one backend.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {

/// What matrix products multiply: float32 numbers as they are, or two float16 numbers in their place
/// (proofs_notes/notes/split_operands.md), added in float32 on tensor cores.
enum class Operands { float32, split_half };

/// The model of a variant's rounding errors: which reference form's operations it performs, and how exactly.
/// Bounds are computed from a problem and this model, never from a variant's output.
struct Arithmetic {
  /// The reference form (of the same operation) whose operations are performed, in any order of each sum;
  /// "any_form" when nothing is known.
  std::string form;
  /// recurrence, form "chunked": steps in a chunk. Form "scan": steps in a tree where the state is carried
  /// from one tree to the next (0: one tree over all steps); its roundings are then at most those of chunks
  /// of that size.
  Index chunk = 0;
  /// recurrence: products of gates are formed in a tree, where the errors of equal gates line up.
  bool tree_products = false;
  double exp_error = 0;  ///< axial: relative error of exp, in units of u = 2^-24
  bool reciprocal_root =
      false;                   ///< axial: 1/sqrt by one approximate instruction instead of sqrt and division
  bool flush_to_zero = false;  ///< subnormal results become zero
  Operands operands = Operands::float32;

  auto operator<=>(const Arithmetic&) const = default;
};

/// The arithmetic of an implementation nothing is known about, but that it computes in float32.
Arithmetic unknown_arithmetic(Operation operation);

/// "float32 sequential", "float32 chunked(16)": what `gaugeblock list` prints.
std::string arithmetic_text(const Arithmetic& arithmetic);

/// Where every claim has its statement, its theorem and its page.
inline constexpr char claims_page[] = "proofs_notes/README.md";

/// Whether there is such a claim, or such a family of claims ("recurrence.scan" of "recurrence.scan.output").
bool is_claim(const std::string& claim);

/// How far the claim behind a proved bound is established: "proved", "tested" or "assumed".
/// Throws std::logic_error for a claim nobody has stated.
std::string claim_status(const std::string& claim);

/// What a variant promises beyond its bound. Every promise is checked by a bitwise relation.
struct Promises {
  bool prefix = false;       ///< outputs up to t have the same bits when the sequence is cut after t
  bool split = false;        ///< splitting the sequence and carrying the state gives the same bits
  bool columns = false;      ///< a column of v gives the same bits wherever it stands
  bool interpreted = false;  ///< the interpreter computes the same bits from the same source
  bool masks_reset = false;  ///< a gate of exactly 0 hides a non-finite past instead of keeping it
};

/// One more run, which must not change a bit.
struct RunAgain {
  std::function<void(const Problem&, Outputs&)> run;
  const char* what = "the same run again";  ///< what "gave other bits", where it does
};

struct ChosenVariant;

struct Variant {
  Operation operation = Operation::recurrence;
  std::string name;     ///< unique within operation and backend: algorithm and mechanism
  std::string backend;  ///< cpu | simt | cuda
  std::string summary;  ///< one sentence: what it changes against the one before
  std::string claim;    ///< id of the claim its proved bound rests on: "recurrence.sequential"
  Arithmetic arithmetic;
  Promises promises;
  /// "auto" only: the variant that stands in for this one on a problem. Its run, arithmetic and promises
  /// count.
  ChosenVariant (*choose)(const Problem&) = nullptr;
  /// Why the problem cannot be taken, or nothing.
  std::function<std::optional<std::string>(const Problem&)> declines;
  /// Computes every element of every output. Precondition: !declines(problem). Throws RunPropertyBroken when
  /// it sees by itself that the run is wrong.
  std::function<void(const Problem&, Outputs&)> run;
  /// The same computation under other conditions (simt: other schedules; cuda: no overlap of launches); plain
  /// repetition when empty.
  std::vector<RunAgain> run_again;
  /// cuda only, for timing: places the problem on the device, and returns what launches the computation on a
  /// cudaStream_t without waiting for it.
  std::function<std::function<void(void* stream)>(const Problem&)> prepare;
};

/// A variant and why it was chosen.
struct ChosenVariant {
  const Variant* variant = nullptr;  ///< null: none takes the problem
  std::string reason;
};

/// The fastest variant of the backend cuda that takes the problem. Throws DeviceFailure in a build without
/// CUDA.
ChosenVariant choose_variant(const Problem& problem);

/// The rules of choose_variant(), in order: a variant's name and where it is taken.
std::vector<std::pair<std::string, std::string>> choice_rules(Operation operation);

/// Every variant of this build: by operation, then backend, in the order of the story they tell.
const std::vector<Variant>& all_variants();

/// Variants of all_variants() whose name matches the shell pattern; for the name "auto" on the backend cuda,
/// a variant whose `choose` is choose_variant(). Throws InputError when none does, DeviceFailure for a
/// backend this build does not have.
std::vector<Variant> select_variants(std::optional<Operation> operation, const std::string& name_pattern,
                                     const std::string& backend);

}  // namespace gaugeblock
