// A campaign: many cases, every variant on each, verdicts, relations, shrinking, sums.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/relations/relation.h"
#include "gaugeblock/verify/variants/variant.h"
#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {

/// How many relations are tried on one variant and case.
enum class RelationEffort {
  some,  ///< a few, chosen by the case
  all,   ///< every one that applies
};

/// The relations to try on a problem: which ones of them when only some are wanted depends on the case alone.
std::vector<const Relation*> relations_for(const Problem& problem, RelationEffort effort);

/// What became of one variant on one case.
struct CaseVerdict {
  Verdict verdict;
  std::string message;  ///< in words, for whatever is not a pass
  std::string chosen;   ///< "auto": the variant that stood in for it
};

/// Runs the variants on one case and judges each: its bounds, the run properties, the relations. Variants
/// that pass agree with each other within the sum of their bounds, because each lies within its own of the
/// same true value. One entry per variant, in the same order.
std::vector<CaseVerdict> check_case(const std::vector<const Variant*>& variants, const Case& c,
                                    RelationEffort effort);

/// The same; each verdict is handed over as soon as it stands, with its position in `variants`.
void check_case(const std::vector<const Variant*>& variants, const Case& c, RelationEffort effort,
                const std::function<void(std::size_t, const CaseVerdict&)>& take);

/// The largest work of a case for the interpreter, which is a thousand times slower than what it interprets.
inline constexpr double largest_interpreted_work = 2e4;

struct CampaignOptions {
  std::vector<Operation> operations;  ///< cases alternate between them
  std::uint64_t seed = 1;
  std::uint64_t cases = 1000;     ///< ignored when `seconds` is set
  std::optional<double> seconds;  ///< as many cases as start within this time
  std::vector<Case> given;        ///< these cases instead of generated ones, with every relation
  double largest_work = largest_campaign_work;  ///< of a generated case, see work()
  std::vector<Case> large;  ///< each once, in place of every thousandth generated one; slow
  unsigned jobs = 1;
  /// Judges in child processes, so that a variant that crashes, hangs or breaks its device costs one verdict
  /// and not the campaign. Variants on a GPU need it; the caller must not have opened the device.
  bool isolated = false;
  std::function<void(std::uint64_t done, std::uint64_t of)> progress;  ///< called now and then; may be empty
  std::function<bool()> stop;  ///< asked before each case: whether no more are to be judged; may be empty
};

struct VariantSummary {
  Operation operation;
  std::string name;
  std::string backend;
  std::string claim;                     ///< id of the claim its proved bound rests on
  std::array<std::uint64_t, 6> count{};  ///< by Outcome
  double worst_ratio = 0;
  double worst_likely_ratio = 0;
  std::string worst_case;         ///< where worst_ratio was seen
  std::string worst_likely_case;  ///< where worst_likely_ratio was seen
  std::uint64_t elements = 0;
  std::uint64_t vacuous_elements = 0;
  std::map<std::string, std::uint64_t> chosen;  ///< "auto": cases by the variant that stood in for it
  std::uint64_t supported() const;              ///< cases it was judged on
};

/// A fault: the case that showed it, and the simplest one that still does.
struct Failure {
  std::string variant;
  std::string backend;
  Operation operation;
  CaseVerdict result;    ///< on `simplest`
  std::string found_in;  ///< the generated case
  std::string simplest;  ///< after shrinking
  std::string command;   ///< repeats it
};

struct CampaignReport {
  std::uint64_t seed = 0;
  std::uint64_t cases = 0;
  bool stopped = false;  ///< by CampaignOptions::stop, before the last case
  std::vector<VariantSummary> variants;
  std::vector<Failure> failures;  ///< the first of each variant
  std::map<std::string, std::map<std::string, std::uint64_t>>
      families;                                ///< "recurrence gate" -> family -> cases
  std::array<std::uint64_t, 6> count() const;  ///< sums over all variants, by Outcome
  bool all_pass() const;                       ///< at least one pass; no suspect, no fail, no error
};

CampaignReport run_campaign(const std::vector<Variant>& variants, const CampaignOptions& options);

using CheckCase =
    std::function<std::vector<CaseVerdict>(const std::vector<const Variant*>&, const Case&, RelationEffort)>;

/// The simplest case, reached from `c` by steps of simpler(), on which the variant still does not pass.
/// Precondition: it does not pass on `c`.
Case shrink(const Variant& variant, const Case& c);
Case shrink(const Variant& variant, const Case& c, const CheckCase& check);

/// The command that repeats a variant's verdict on a case.
std::string repeat_command(const Variant& variant, const std::string& case_text);

}  // namespace gaugeblock
