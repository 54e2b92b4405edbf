#include "gaugeblock/verify/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gaugeblock/verify/bounds/column_oracle.h"
#include "gaugeblock/verify/bounds/likely.h"

namespace gaugeblock {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr char no_useful_bound[] = "no useful bound for any element";

/// error / limit; 0 / 0 is 0 (an exact result needs no allowance), anything that is not a number is infinite.
double ratio_of(double error, double limit) {
  if (error == 0) return 0;
  const double ratio = error / limit;
  return std::isnan(ratio) ? infinity : ratio;
}

/// Whether the limit says anything about the row [first, last): it would reject a row of zeros, or zeros are
/// what float32 rounds the whole row to.
bool useful(const std::vector<double>& limit, const std::vector<double>& expected, std::size_t first,
            std::size_t last) {
  bool all_zero = true;
  for (std::size_t e = first; e < last; ++e) {
    if (limit[e] < std::abs(expected[e])) return true;
    all_zero = all_zero && std::abs(expected[e]) <= 0x1p-150;
  }
  return all_zero;
}

}  // namespace

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::vacuous:
      return "vacuous";
    case Outcome::suspect:
      return "suspect";
    case Outcome::fail:
      return "fail";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::error:
      return "error";
  }
  return "error";
}

void Verdict::merge(const Verdict& other) {
  // What nobody could judge is pointed at only when there is nothing else.
  const bool is_judged = compared > vacuous_elements;
  const bool other_is_judged = other.compared > other.vacuous_elements;
  const bool is_wider = other.outcome == outcome && other.worst_ratio > worst_ratio;
  if (compared == 0 || (other_is_judged && (!is_judged || other.outcome > outcome || is_wider)))
    worst = other.worst;
  unjudged.insert(unjudged.end(), other.unjudged.begin(), other.unjudged.end());
  worst_ratio = std::max(worst_ratio, other.worst_ratio);
  worst_likely_ratio = std::max(worst_likely_ratio, other.worst_likely_ratio);
  compared += other.compared;
  vacuous_elements += other.vacuous_elements;
  const Outcome graver = std::max(outcome, other.outcome);
  if (graver > Outcome::vacuous) {
    if (other.outcome > outcome) reason = other.reason;
    outcome = graver;
  } else {
    outcome = compared > 0 && vacuous_elements == compared ? Outcome::vacuous : Outcome::pass;
    reason = outcome == Outcome::vacuous ? no_useful_bound : "";
  }
}

Verdict judge_tensor(const Judged& judged, Limits limits) {
  const std::size_t size = static_cast<std::size_t>(element_count(judged.shape, judged.tensor));
  if (judged.actual.size() != size || judged.expected.size() != size || judged.proved.size() != size ||
      judged.likely.size() != size)
    throw std::logic_error("judge_tensor: '" + judged.tensor + "' has " + std::to_string(size) +
                           " elements, but not every vector has as many");

  Verdict verdict;
  const std::size_t row = judged.shape.empty() ? 1 : static_cast<std::size_t>(judged.shape.back());
  double worst_ratio = -1;  // of the element the verdict points at, among those of the gravest outcome
  std::size_t worst = 0;
  for (std::size_t first = 0; first < size; first += row) {
    const std::size_t last = first + row;
    const bool proved_is_useful = useful(judged.proved, judged.expected, first, last);
    const bool likely_is_useful =
        limits == Limits::proved_and_likely && useful(judged.likely, judged.expected, first, last);
    for (std::size_t e = first; e < last; ++e) {
      ++verdict.compared;
      const double expected = judged.expected[e];
      const double error = std::abs(double(judged.actual[e]) - expected);
      const bool has_proved = judged.proved[e] < infinity;
      const bool has_likely = likely_is_useful && judged.likely[e] < infinity;
      Outcome outcome = Outcome::pass;
      if (!(std::abs(expected) <= double(std::numeric_limits<float>::max()))) {
        outcome = Outcome::vacuous;
      } else if (has_proved && !(error <= judged.proved[e])) {
        outcome = Outcome::fail;  // even a bound too wide to be useful is a theorem
      } else if (has_likely && !(error <= judged.likely[e])) {
        outcome = Outcome::suspect;
      } else if (!(has_proved && proved_is_useful) && !has_likely) {
        outcome = Outcome::vacuous;
      }
      if (outcome == Outcome::vacuous) {
        ++verdict.vacuous_elements;
        continue;
      }
      const double proved_ratio = has_proved ? ratio_of(error, judged.proved[e]) : 0;
      const double likely_ratio = has_likely ? ratio_of(error, judged.likely[e]) : 0;
      verdict.worst_ratio = std::max(verdict.worst_ratio, proved_ratio);
      verdict.worst_likely_ratio = std::max(verdict.worst_likely_ratio, likely_ratio);
      const double ratio = has_proved && outcome != Outcome::suspect ? proved_ratio : likely_ratio;
      if (outcome > verdict.outcome || (outcome == verdict.outcome && ratio > worst_ratio)) {
        verdict.outcome = outcome;
        worst_ratio = ratio;
        worst = e;
      }
    }
  }

  if (size > 0)
    verdict.worst = {judged.tensor,
                     subscripts(judged.shape, static_cast<Index>(worst)),
                     static_cast<Index>(worst),
                     judged.actual[worst],
                     judged.expected[worst],
                     judged.proved[worst],
                     judged.likely[worst] / likely_sigmas,
                     {}};
  if (verdict.outcome == Outcome::fail) verdict.reason = "proved";
  if (verdict.outcome == Outcome::suspect) verdict.reason = "likely";
  if (verdict.compared > 0 && verdict.vacuous_elements == verdict.compared) {
    verdict.outcome = Outcome::vacuous;
    verdict.reason = no_useful_bound;
    verdict.unjudged = {judged.tensor};
  }
  return verdict;
}

Verdict judge_outputs(const Problem& problem, Oracle& oracle, const Outputs& outputs,
                      const Arithmetic& arithmetic, Limits limits) {
  Verdict verdict;
  const auto judge_with = [&](Oracle& by, const std::string& output, const std::string& output_of_oracle) {
    const Tensor& tensor = outputs.at(output);
    const std::vector<float> actual = tensor.values();
    std::vector<double> unlimited;
    const bool wants_likely = limits == Limits::proved_and_likely;
    if (!wants_likely) unlimited.assign(actual.size(), infinity);
    Verdict one = judge_tensor(
        {output, tensor.shape, actual, by.expected(output_of_oracle), by.proved(output_of_oracle, arithmetic),
         wants_likely ? by.likely(output_of_oracle, arithmetic) : unlimited},
        limits);
    if (one.compared > 0) one.worst.claim = by.claim(output_of_oracle, arithmetic, one.worst.element);
    verdict.merge(one);
  };
  const auto row = outputs.find("row");
  if (row != outputs.end() && problem.operation == Operation::axial) {
    judge_with(oracle, "row", "row");
    // The bound takes `row` as an input here: the column pass of that very row is another problem.
    const std::unique_ptr<Oracle> column = make_column_oracle(problem, row->second);
    judge_with(*column, "y", "y");
  } else {
    for (const auto& [output, tensor] : outputs) judge_with(oracle, output, output);
  }
  return verdict;
}

}  // namespace gaugeblock
