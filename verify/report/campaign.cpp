#include "gaugeblock/verify/report/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/random.h"
#include "gaugeblock/verify/report/isolated.h"
#include "gaugeblock/verify/verdict/checked_run.h"

namespace gaugeblock {
namespace {

// A few relations a case: over a campaign every relation meets every family many times.
constexpr std::size_t relations_per_case = 3;

// A large case takes as long as hundreds of others.
constexpr std::uint64_t cases_per_large_case = 1000;

std::size_t slot(Outcome outcome) {
  return static_cast<std::size_t>(outcome);
}

bool is_failure(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::suspect || outcome == Outcome::error;
}

std::string describe(const Verdict& verdict) {
  const Finding& at = verdict.worst;
  return fmt::format(
      "{}[{}] is {:.9g}, expected {:.9g}: off by {:.3g}, proved bound {:.3g} ({}), likely limit {:.3g}",
      at.tensor, fmt::join(at.index, ","), at.actual, at.expected, std::abs(at.actual - at.expected),
      at.bound, at.claim, at.sigma * 8);
}

void fail(CaseVerdict& result, Outcome outcome, std::string reason, std::string message) {
  result.verdict.outcome = outcome;
  result.verdict.reason = std::move(reason);
  result.message = std::move(message);
}

/// The run, its properties, its bounds and its relations.
CaseVerdict check_variant(const Variant& variant, const Problem& problem, Oracle& oracle,
                          DerivedOracles& derived, RelationEffort effort) {
  CaseVerdict result;
  if (variant.choose != nullptr) {
    const ChosenVariant chosen = variant.choose(problem);
    if (chosen.variant == nullptr) {
      fail(result, Outcome::unsupported, chosen.reason, chosen.reason);
      return result;
    }
    Variant stand_in = *chosen.variant;
    // --repeats asks for more runs than the variant has of its own.
    stand_in.run_again.insert(stand_in.run_again.end(), variant.run_again.begin(), variant.run_again.end());
    result = check_variant(stand_in, problem, oracle, derived, effort);
    result.chosen = stand_in.name;
    return result;
  }
  if (const std::optional<std::string> reason = variant.declines(problem)) {
    fail(result, Outcome::unsupported, *reason, *reason);
    return result;
  }
  CheckedRun run = run_checked(variant, problem);
  if (!run.declined.empty()) {
    fail(result, Outcome::unsupported, run.declined, run.declined);
    return result;
  }
  if (!run.error.empty()) {
    fail(result, Outcome::error, "error", run.error);
    return result;
  }
  if (!run.broken.empty()) {
    fail(result, Outcome::fail, run.broken.starts_with("interpreter") ? "interpreter" : "run property",
         run.broken);
    return result;
  }
  result.verdict = judge_outputs(problem, oracle, run.outputs, variant.arithmetic);
  if (result.verdict.outcome == Outcome::fail || result.verdict.outcome == Outcome::suspect) {
    result.message = describe(result.verdict);
    return result;
  }

  const std::uint64_t seed = fnv1a(problem.case_text);
  for (const Relation* tried : relations_for(problem, effort)) {
    const Relation& relation = *tried;
    try {
      const RelationResult checked = relation.check({variant, problem, oracle, derived, run.outputs, seed});
      if (checked.kind != RelationResult::Kind::broken) continue;
      fail(result, Outcome::fail, "relation " + relation.name,
           checked.message + " (" + relation.identity + ")");
      return result;
    } catch (const NothingToJudge&) {
      continue;  // the variant declines the relation's problem
    } catch (const RunPropertyBroken& property) {
      fail(result, Outcome::fail, "relation " + relation.name, property.what());
      return result;
    } catch (const std::exception& failure) {
      fail(result, Outcome::error, "relation " + relation.name, failure.what());
      return result;
    }
  }
  return result;
}

}  // namespace

std::vector<const Relation*> relations_for(const Problem& problem, RelationEffort effort) {
  const std::vector<Relation>& relations = relations_of(problem.operation);
  const std::uint64_t first = fnv1a(problem.case_text) % relations.size();
  const std::size_t count = effort == RelationEffort::all ? relations.size() : relations_per_case;
  std::vector<const Relation*> chosen;
  for (std::size_t i = 0; i < std::min(count, relations.size()); ++i)
    chosen.push_back(&relations[(first + i) % relations.size()]);
  return chosen;
}

std::uint64_t VariantSummary::supported() const {
  return count[slot(Outcome::pass)] + count[slot(Outcome::vacuous)] + count[slot(Outcome::suspect)] +
         count[slot(Outcome::fail)] + count[slot(Outcome::error)];
}

std::array<std::uint64_t, 6> CampaignReport::count() const {
  std::array<std::uint64_t, 6> sum{};
  for (const VariantSummary& variant : variants)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += variant.count[i];
  return sum;
}

bool CampaignReport::all_pass() const {
  const std::array<std::uint64_t, 6> sum = count();
  return sum[slot(Outcome::pass)] > 0 &&
         sum[slot(Outcome::suspect)] + sum[slot(Outcome::fail)] + sum[slot(Outcome::error)] == 0;
}

std::string repeat_command(const Variant& variant, const std::string& case_text) {
  return fmt::format("gaugeblock verify --op {} --backend {} --variant {} --case '{}'",
                     name(variant.operation), variant.backend, variant.name, case_text);
}

void check_case(const std::vector<const Variant*>& variants, const Case& c, RelationEffort effort,
                const std::function<void(std::size_t, const CaseVerdict&)>& take) {
  std::size_t taken = 0;
  try {
    const Problem problem = make_problem(c);
    const std::unique_ptr<Oracle> oracle = make_oracle(problem);
    DerivedOracles derived;
    for (const Variant* variant : variants) {
      const CaseVerdict result = check_variant(*variant, problem, *oracle, derived, effort);
      take(taken++, result);
    }
  } catch (const InputError&) {
    throw;  // the case itself is not possible: the caller gave it
  } catch (const std::exception& failure) {
    CaseVerdict result;
    fail(result, Outcome::error, "error", failure.what());
    while (taken < variants.size()) take(taken++, result);
  }
}

std::vector<CaseVerdict> check_case(const std::vector<const Variant*>& variants, const Case& c,
                                    RelationEffort effort) {
  std::vector<CaseVerdict> results(variants.size());
  check_case(variants, c, effort, [&](std::size_t i, const CaseVerdict& result) { results[i] = result; });
  return results;
}

Case shrink(const Variant& variant, const Case& c) {
  return shrink(variant, c, [](const auto& variants, const Case& candidate, RelationEffort effort) {
    return check_case(variants, candidate, effort);
  });
}

Case shrink(const Variant& variant, const Case& c, const CheckCase& check) {
  const auto is_wrong = [&](const Case& candidate) {
    try {
      return is_failure(check({&variant}, candidate, RelationEffort::all).front().verdict.outcome);
    } catch (const InputError&) {
      return false;
    }
  };
  Case simplest = c;
  // Every step makes the case strictly simpler; the limit only keeps a slow variant from shrinking for hours.
  for (int tries = 0; tries < 2000;) {
    bool found = false;
    for (const Case& candidate : simpler(simplest)) {
      if (++tries >= 2000) break;
      if (!is_wrong(candidate)) continue;
      simplest = candidate;
      found = true;
      break;
    }
    if (!found) break;
  }
  return simplest;
}

CampaignReport run_campaign(const std::vector<Variant>& variants, const CampaignOptions& options) {
  CampaignReport report;
  report.seed = options.seed;
  for (const Variant& variant : variants) {
    VariantSummary summary{};
    summary.operation = variant.operation;
    summary.name = variant.name;
    summary.backend = variant.backend;
    summary.claim = variant.claim;
    report.variants.push_back(summary);
  }
  const auto started = std::chrono::steady_clock::now();
  const auto seconds_since_start = [started] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  };
  const std::uint64_t total = options.given.empty() ? options.cases : options.given.size();

  struct Found {
    std::uint64_t index;
    Case c;
  };
  std::vector<std::optional<Found>> first_failure(variants.size());
  std::vector<std::uint64_t> worst_index(variants.size(), 0), worst_likely_index(variants.size(), 0);
  std::mutex mutex;
  std::exception_ptr thrown;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stopped{false};

  // The first thing: a process with several threads is no good parent.
  const unsigned jobs = std::max(1U, options.jobs);
  std::vector<IsolatedChecker> isolated;
  if (options.isolated) isolated = IsolatedChecker::several(variants, jobs);
  const auto checker = [&isolated](unsigned job) -> CheckCase {
    return [&isolated, job](const auto& chosen, const Case& c, RelationEffort effort) {
      return isolated.empty() ? check_case(chosen, c, effort) : isolated[job].check(chosen, c, effort);
    };
  };
  const auto numbered_case = [&options](std::uint64_t index) {
    if (!options.given.empty()) return options.given[index];
    if (index % cases_per_large_case == cases_per_large_case - 1 &&
        index / cases_per_large_case < options.large.size())
      return options.large[index / cases_per_large_case];
    return campaign_case(options.operations[index % options.operations.size()], options.seed,
                         index / options.operations.size(), options.largest_work);
  };

  const auto work = [&](unsigned job) {
    const CheckCase check = checker(job);
    try {
      while (true) {
        const std::uint64_t index = next.fetch_add(1);
        const bool out_of_time =
            options.given.empty() && options.seconds && seconds_since_start() > *options.seconds;
        if (out_of_time || ((options.given.size() > 0 || !options.seconds) && index >= total)) return;
        if (options.stop && options.stop()) {
          stopped = true;
          return;
        }
        const Case c = numbered_case(index);
        const Operation operation = operation_of(c);
        std::vector<const Variant*> chosen;
        std::vector<std::size_t> position;
        for (std::size_t i = 0; i < variants.size(); ++i)
          if (variants[i].operation == operation) {
            chosen.push_back(&variants[i]);
            position.push_back(i);
          }
        const std::vector<CaseVerdict> results =
            check(chosen, c, options.given.empty() ? RelationEffort::some : RelationEffort::all);

        const std::lock_guard lock(mutex);
        ++report.cases;
        for (const auto& [key, family] : families(c))
          ++report.families[std::string(name(operation)) + " " + key][family];
        for (std::size_t i = 0; i < results.size(); ++i) {
          const std::size_t v = position[i];
          const Verdict& verdict = results[i].verdict;
          VariantSummary& summary = report.variants[v];
          ++summary.count[slot(verdict.outcome)];
          if (!results[i].chosen.empty()) ++summary.chosen[results[i].chosen];
          summary.elements += static_cast<std::uint64_t>(verdict.compared);
          summary.vacuous_elements += static_cast<std::uint64_t>(verdict.vacuous_elements);
          // Of equal ones the first, so that the number of jobs does not matter.
          const auto keep_worst = [&](double ratio, double& worst, std::string& where, std::uint64_t& at) {
            if (verdict.compared == 0) return false;
            if (!where.empty() && !(ratio > worst || (ratio == worst && index < at))) return false;
            worst = ratio;
            where = print_case(c);
            at = index;
            return true;
          };
          keep_worst(verdict.worst_likely_ratio, summary.worst_likely_ratio, summary.worst_likely_case,
                     worst_likely_index[v]);
          if (keep_worst(verdict.worst_ratio, summary.worst_ratio, summary.worst_case, worst_index[v]) &&
              !results[i].chosen.empty())
            summary.claim = verdict.worst.claim;
          if (is_failure(verdict.outcome) && (!first_failure[v] || index < first_failure[v]->index))
            first_failure[v] = Found{index, c};
        }
        if (options.progress) options.progress(report.cases, options.seconds ? 0 : total);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
      next = total;  // the others stop after the case they are at
    }
  };
  std::vector<std::thread> threads;
  for (unsigned job = 1; job < jobs; ++job) threads.emplace_back(work, job);
  work(0);
  for (std::thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
  report.stopped = stopped;

  const CheckCase check = checker(0);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    if (!first_failure[v]) continue;
    const Case simplest = shrink(variants[v], first_failure[v]->c, check);
    Failure failure;
    failure.variant = variants[v].name;
    failure.backend = variants[v].backend;
    failure.operation = variants[v].operation;
    failure.result = check({&variants[v]}, simplest, RelationEffort::all).front();
    failure.found_in = print_case(first_failure[v]->c);
    failure.simplest = print_case(simplest);
    failure.command = repeat_command(variants[v], failure.simplest);
    report.failures.push_back(std::move(failure));
  }
  return report;
}

}  // namespace gaugeblock
