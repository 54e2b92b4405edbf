// The verdict: an output against the truth and the two limits, element by element.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gaugeblock/verify/bounds/oracle.h"

namespace gaugeblock {

/// In rising order of gravity.
enum class Outcome { pass, vacuous, suspect, fail, unsupported, error };

std::string_view name(Outcome outcome);

/// One output tensor to be judged. All vectors have one value per element, in C order.
struct Judged {
  std::string tensor;
  std::vector<Index> shape;
  const std::vector<float>& actual;
  const std::vector<double>& expected;
  const std::vector<double>& proved;  ///< bound on |actual - expected|; infinity where there is none
  const std::vector<double>& likely;  ///< likely limit on the same; infinity where there is none
};

/// The element a verdict points at: the one with the worst ratio of error to bound.
struct Finding {
  std::string tensor;
  std::vector<Index> index;
  Index element = 0;  ///< the same place, counted in C order
  double actual = 0;
  double expected = 0;
  double bound = 0;
  double sigma = 0;   ///< the likely limit / 8
  std::string claim;  ///< what the proved bound rests on; empty where nobody said
};

struct Verdict {
  Outcome outcome = Outcome::pass;
  std::string reason;  ///< what was broken: "proved", "likely", a run property, a relation; empty on a pass
  double worst_ratio =
      0;  ///< largest |actual - expected| / proved over the elements that have a useful bound
  double worst_likely_ratio = 0;      ///< largest |actual - expected| / likely
  Finding worst;                      ///< where: a failing element first, then the largest ratio
  Index compared = 0;                 ///< elements looked at
  Index vacuous_elements = 0;         ///< elements where neither limit says anything
  std::vector<std::string> unjudged;  ///< tensors of which no element could be judged

  /// Takes in the verdict on another tensor: a suspect or failed one decides, else all is vacuous only when
  /// no element of any tensor could be judged.
  void merge(const Verdict& other);
};

enum class Limits { proved_and_likely, proved_only };

/// Judges one tensor. An element passes when |actual - expected| <= both limits, so that NaN fails.
///
/// A limit is useful for an element when it is finite and would reject an all-zero output somewhere in the
/// element's row (its last dimension), or when float32 rounds the whole row to zero. An element without any
/// useful limit, or whose true value leaves float32's range, is vacuous: counted, never passed. Where the
/// proved bound alone is useless, the likely limit decides, and the other way round; a value beyond a finite
/// proved bound fails in any case. Throws std::logic_error when the sizes of the vectors and the shape
/// differ.
Verdict judge_tensor(const Judged& judged, Limits limits = Limits::proved_and_likely);

/// Judges every output of a problem. For an axial problem with an output `row`, `row` is judged by itself and
/// `y` against the column pass of that very `row`.
Verdict judge_outputs(const Problem& problem, Oracle& oracle, const Outputs& outputs,
                      const Arithmetic& arithmetic, Limits limits = Limits::proved_and_likely);

}  // namespace gaugeblock
