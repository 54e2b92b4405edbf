#include "kill_table.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "checkers.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/random.h"
#include "gaugeblock/verify/relations/relation.h"
#include "gaugeblock/verify/report/campaign.h"
#include "gaugeblock/verify/verdict/checked_run.h"
#include "gaugeblock/verify/verdict/verdict.h"

namespace gaugeblock {
namespace {

constexpr std::uint64_t default_seed = 1;
constexpr double infinity = std::numeric_limits<double>::infinity();

Case default_case(Operation operation, const std::string& backend, std::uint64_t index) {
  return campaign_case(operation, default_seed, index,
                       backend == "simt" ? largest_interpreted_work : largest_campaign_work);
}

/// Of this thread, whatever else the machine does.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

bool is_failure(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::suspect || outcome == Outcome::error;
}

}  // namespace

Kill kill(const Mutant& mutant, std::uint64_t largest_number_of_cases) {
  Kill result;
  const double started = cpu_seconds();
  while (!result.killed && result.cases < largest_number_of_cases) {
    const Case c = default_case(mutant.variant.operation, mutant.variant.backend, result.cases++);
    const CaseVerdict verdict = check_case({&mutant.variant}, c, RelationEffort::some).front();
    if (!is_failure(verdict.verdict.outcome)) continue;
    result.killed = true;
    result.reason = verdict.verdict.reason;
    result.message = verdict.message;
    result.case_text = print_case(c);
  }
  result.seconds = cpu_seconds() - started;
  return result;
}

Case usual_case(Operation operation, const std::string& backend, std::uint64_t trial) {
  // The interpreter is a thousand times slower than what it interprets.
  const std::string size =
      operation == Operation::recurrence
          ? (backend == "simt" ? "recurrence:B=1,T=32,H=2,K=32,V=32" : "recurrence:B=2,T=128,H=4,K=24,V=24")
          : (backend == "simt" ? "axial:B=1,H=8,W=8,D=16,heads=4" : "axial:B=4,H=32,W=32,D=64,heads=4");
  const std::string families = operation == Operation::recurrence ? ",gate=uniform,beta=uniform" : "";
  return parse_case(size + families + ",seed=" + std::to_string(trial + 1));
}

namespace {

const std::vector<std::string>& own_columns() {
  static const std::vector<std::string> names{"proved", "likely", "run property", "relation", "interpreter"};
  return names;
}

const std::string usual_suffix;  // a checker's own inputs bear its name alone
const std::string our_suffix = ", our inputs";
const std::string proved_on_usual_inputs = "proved, usual inputs";

/// A variant under every check: a mutant, or a correct one.
struct Subject {
  const Variant* variant = nullptr;
  const Mutant* mutant = nullptr;  ///< null for a correct variant
  std::map<std::string, FalseAlarms> by_column;
};

/// The outputs that a check of outputs alone is given; nothing when the variant declines the problem.
std::optional<Outputs> unwatched_outputs(const Subject& subject, const Problem& problem) {
  if (subject.variant->declines(problem)) return std::nullopt;
  Outputs outputs = make_outputs(problem);
  Problem copy = problem;
  try {
    if (subject.mutant != nullptr && subject.mutant->unwatched)
      subject.mutant->unwatched(copy, outputs);
    else
      subject.variant->run(copy, outputs);
  } catch (const NothingToJudge&) {
    return std::nullopt;
  } catch (const std::exception&) {  // what is there is judged
  }
  return outputs;
}

/// Whether the likely limit alone rejects an element.
bool likely_rejects(Oracle& oracle, const Outputs& outputs, const Arithmetic& arithmetic) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) {
    const auto& [name, tensor] = output;
    const std::vector<float> actual = tensor.values();
    const std::vector<double> unlimited(actual.size(), infinity);
    const Verdict verdict = judge_tensor(
        {name, tensor.shape, actual, oracle.expected(name), unlimited, oracle.likely(name, arithmetic)});
    return verdict.outcome == Outcome::suspect;
  });
}

bool proved_rejects(const Problem& problem, Oracle& oracle, const Outputs& outputs,
                    const Arithmetic& arithmetic) {
  return judge_outputs(problem, oracle, outputs, arithmetic, Limits::proved_only).outcome == Outcome::fail;
}

/// Whether one of the relations that the campaign tries on this case is broken, as far as outputs show it.
bool relation_rejects(const Subject& subject, const Problem& problem, Oracle& oracle, DerivedOracles& derived,
                      const Outputs& outputs) {
  Variant variant = *subject.variant;
  if (subject.mutant != nullptr && subject.mutant->unwatched) variant.run = subject.mutant->unwatched;
  for (const Relation* relation : relations_for(problem, RelationEffort::some)) {
    try {
      const RelationResult result =
          relation->check({variant, problem, oracle, derived, outputs, fnv1a(problem.case_text)});
      if (result.kind == RelationResult::Kind::broken) return true;
    } catch (const std::exception&) {  // declined, or stopped by something that is no relation's doing
    }
  }
  return false;
}

/// What belongs to one problem and not to a subject.
struct Truths {
  std::map<std::string, double> error_in_bfloat16;  // by output
  std::map<std::string, double> error_in_float32;
};

Truths truths_of(const Problem& problem, Oracle& oracle) {
  Truths truths;
  const Outputs low = in_bfloat16(problem);
  Outputs plain = make_outputs(problem);
  for (const Variant& variant : all_variants())
    if (variant.operation == problem.operation && variant.backend == "cpu") {
      variant.run(problem, plain);  // the first is the definition
      break;
    }
  for (const auto& [name, tensor] : plain) {
    truths.error_in_bfloat16[name] = largest_error(low.at(name).values(), oracle.expected(name));
    truths.error_in_float32[name] = largest_error(tensor.values(), oracle.expected(name));
  }
  return truths;
}

class Table {
 public:
  explicit Table(const KillTableOptions& options) : options_(options) {
    for (const Mutant& mutant : all_mutants()) subjects_.push_back({&mutant.variant, &mutant, {}});
    for (const Variant& variant : all_variants())
      if (variant.backend != "cuda") subjects_.push_back({&variant, nullptr, {}});
    table_.cases = options.cases;
    table_.columns = own_columns();
    table_.columns.push_back(proved_on_usual_inputs);
    for (const Checker& checker : other_checkers())
      for (const std::string& suffix : {usual_suffix, our_suffix})
        table_.columns.push_back(checker.name + suffix);
  }

  KillTable compute() {
    calibrate();
    std::vector<std::function<void()>> tasks;
    for (const Operation operation : {Operation::recurrence, Operation::axial})
      for (const std::string backend : {"cpu", "simt"}) {
        for (std::uint64_t trial = 0; trial < usual_trials; ++trial)
          tasks.emplace_back([=, this] { on_usual_inputs(operation, backend, trial); });
        for (std::uint64_t index = 0; index < options_.cases; ++index)
          tasks.emplace_back([=, this] { on_our_inputs(operation, backend, index); });
      }
    table_.mutants.resize(all_mutants().size());
    for (std::size_t m = 0; m < all_mutants().size(); ++m)
      tasks.emplace_back([=, this] { table_.mutants[m].kill = kill(all_mutants()[m], options_.kill_cases); });
    run(tasks);
    for (std::size_t s = 0; s < subjects_.size(); ++s)
      for (const std::string& column : table_.columns) {
        const FalseAlarms& counts = subjects_[s].by_column[column];
        if (subjects_[s].mutant != nullptr) {
          table_.mutants[s].mutant = subjects_[s].mutant;
          table_.mutants[s].caught[column] = counts.alarms > 0;
        } else {
          table_.false_alarms[column].runs += counts.runs;
          table_.false_alarms[column].alarms += counts.alarms;
        }
      }
    return std::move(table_);
  }

 private:
  void run(const std::vector<std::function<void()>>& tasks) {
    std::atomic<std::size_t> next{0}, done{0};
    std::exception_ptr thrown;
    const auto work = [&] {
      for (std::size_t task = next++; task < tasks.size(); task = next++) {
        try {
          tasks[task]();
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!thrown) thrown = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        ++done;
        if (options_.progress) options_.progress(done, tasks.size());
      }
    };
    std::vector<std::thread> threads;
    for (unsigned job = 1; job < options_.jobs; ++job) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (thrown) std::rethrow_exception(thrown);
  }

  /// 1.5 × the 95th percentile of the largest errors of correct variants on their usual inputs.
  void calibrate() {
    for (const Operation operation : {Operation::recurrence, Operation::axial}) {
      std::vector<double> errors;
      for (std::uint64_t trial = 0; trial < usual_trials; ++trial) {
        const Problem problem = make_problem(usual_case(operation, "cpu", usual_trials + trial));
        const std::unique_ptr<Oracle> oracle = make_oracle(problem);
        for (const Subject& subject : subjects_) {
          if (subject.mutant != nullptr || subject.variant->operation != operation ||
              subject.variant->backend != "cpu")
            continue;
          const std::optional<Outputs> outputs = unwatched_outputs(subject, problem);
          if (!outputs) continue;
          double largest = 0;
          for (const auto& [name, tensor] : *outputs)
            largest = std::max(largest, largest_error(tensor.values(), oracle->expected(name)));
          errors.push_back(largest);
        }
      }
      std::sort(errors.begin(), errors.end());
      const auto at = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(errors.size()))) - 1;
      calibrated_[operation] = 1.5 * errors.at(at);
    }
  }

  template <class Visit>
  void for_each_subject(Operation operation, const std::string& backend, const Visit& visit) {
    for (Subject& subject : subjects_)
      if (subject.variant->operation == operation && subject.variant->backend == backend) visit(subject);
  }

  void record(Subject& subject, const std::string& column, bool rejected) {
    const std::lock_guard lock(mutex_);
    ++subject.by_column[column].runs;
    subject.by_column[column].alarms += rejected ? 1 : 0;
  }
  bool already_caught(Subject& subject, const std::string& column) {
    const std::lock_guard lock(mutex_);
    return subject.mutant != nullptr && subject.by_column[column].alarms > 0;
  }

  void others(Subject& subject, Oracle& oracle, const Outputs& outputs, const Truths& truths,
              const std::string& suffix) {
    for (const Checker& checker : other_checkers()) {
      bool accepted = true;
      for (const auto& [name, tensor] : outputs)
        accepted =
            accepted &&
            checker.accepts({tensor.values(), oracle.expected(name), truths.error_in_bfloat16.at(name),
                             truths.error_in_float32.at(name), calibrated_.at(subject.variant->operation)});
      record(subject, checker.name + suffix, !accepted);
    }
  }

  void on_usual_inputs(Operation operation, const std::string& backend, std::uint64_t trial) {
    const Problem problem = make_problem(usual_case(operation, backend, trial));
    const std::unique_ptr<Oracle> oracle = make_oracle(problem);
    const Truths truths = truths_of(problem, *oracle);
    for_each_subject(operation, backend, [&](Subject& subject) {
      const std::optional<Outputs> outputs = unwatched_outputs(subject, problem);
      if (!outputs) return;
      record(subject, proved_on_usual_inputs,
             proved_rejects(problem, *oracle, *outputs, subject.variant->arithmetic));
      others(subject, *oracle, *outputs, truths, usual_suffix);
    });
  }

  void on_our_inputs(Operation operation, const std::string& backend, std::uint64_t index) {
    const Problem problem = make_problem(default_case(operation, backend, index));
    const std::unique_ptr<Oracle> oracle = make_oracle(problem);
    DerivedOracles derived;
    const Truths truths = truths_of(problem, *oracle);
    for_each_subject(operation, backend, [&](Subject& subject) {
      const std::optional<Outputs> outputs = unwatched_outputs(subject, problem);
      if (!outputs) return;
      const Variant& variant = *subject.variant;
      record(subject, "proved", proved_rejects(problem, *oracle, *outputs, variant.arithmetic));
      record(subject, "likely", likely_rejects(*oracle, *outputs, variant.arithmetic));
      others(subject, *oracle, *outputs, truths, our_suffix);
      if (!already_caught(subject, "run property") && !already_caught(subject, "interpreter")) {
        const std::string broken = run_checked(variant, problem).broken;
        const bool by_interpreter = broken.starts_with("interpreter");
        record(subject, "interpreter", by_interpreter);
        record(subject, "run property", !broken.empty() && !by_interpreter);
      }
      if (!already_caught(subject, "relation"))
        record(subject, "relation", relation_rejects(subject, problem, *oracle, derived, *outputs));
    });
  }

  const KillTableOptions& options_;
  std::vector<Subject> subjects_;
  std::map<Operation, double> calibrated_;
  KillTable table_;
  std::mutex mutex_;
};

}  // namespace

KillTable kill_table(const KillTableOptions& options) {
  return Table(options).compute();
}

nlohmann::ordered_json kill_table_json(const KillTable& table) {
  using Json = nlohmann::ordered_json;
  Json json;
  const auto killed = std::count_if(table.mutants.begin(), table.mutants.end(),
                                    [](const MutantRow& row) { return row.kill.killed; });
  json["summary"] = {{"mutants", table.mutants.size()},
                     {"equivalent", 0},
                     {"killed", killed},
                     {"cases", table.cases},
                     {"usual_trials", usual_trials}};
  json["kinds"] = Json::array();
  for (int kind = 0; kind < kind_count; ++kind)
    json["kinds"].push_back(std::string(name(static_cast<Kind>(kind))));
  json["mutants"] = Json::array();
  for (const MutantRow& row : table.mutants) {
    const Mutant& mutant = *row.mutant;
    Json killed_by = Json::array();
    if (row.kill.killed) killed_by.push_back(row.kill.reason);
    for (const std::string& column : own_columns())
      if (row.caught.at(column) && !row.kill.reason.starts_with(column)) killed_by.push_back(column);
    Json checkers;
    checkers["gaugeblock"] = row.kill.killed;
    for (const std::string& column : table.columns) checkers[column] = row.caught.at(column);
    json["mutants"].push_back({{"id", mutant.variant.name},
                               {"op", std::string(name(mutant.variant.operation))},
                               {"subject", mutant.variant.backend + " " + mutant.variant.arithmetic.form},
                               {"kind", std::string(name(mutant.kind))},
                               {"fault", mutant.variant.summary},
                               {"seen", mutant.seen},
                               {"needs", mutant.needs},
                               {"hides", mutant.hides},
                               {"killed_by", killed_by},
                               {"cases", row.kill.cases},
                               {"seconds", row.kill.seconds},
                               {"case", row.kill.case_text},
                               {"checkers", checkers}});
  }
  json["checkers"] = Json::array();
  for (const Checker& checker : other_checkers())
    json["checkers"].push_back({{"name", checker.name}, {"source", checker.source}});
  json["false_alarms"] = Json::array();
  for (const std::string& column : table.columns) {
    const FalseAlarms& counts = table.false_alarms.at(column);
    json["false_alarms"].push_back({{"checker", column}, {"runs", counts.runs}, {"alarms", counts.alarms}});
  }
  return json;
}

std::string kill_table_text(const KillTable& table) {
  std::string text;
  const auto line = [&text](std::string_view format, const auto&... arguments) {
    fmt::vformat_to(std::back_inserter(text), format, fmt::make_format_args(arguments...));
    text += '\n';
  };
  // Columns across would be too wide: a block per kind of input.
  std::vector<std::string> usual{proved_on_usual_inputs}, ours = own_columns();
  for (const Checker& checker : other_checkers()) {
    usual.push_back(checker.name + usual_suffix);
    ours.push_back(checker.name + our_suffix);
  }
  const auto block = [&](const std::string& title, const std::vector<std::string>& columns) {
    std::vector<std::string> heads{"gaugeblock"};
    for (std::string column : columns) {
      for (const std::string& end : {our_suffix, std::string(", usual inputs")})
        if (column.ends_with(end)) column.resize(column.size() - end.size());
      heads.push_back(column);
    }
    std::string head = fmt::format("{:<24} {:>7}", title, "mutants");
    for (const std::string& column : heads) head += "  " + column;
    line("{}", head);
    const auto row_of = [&](const std::string& label, const auto& belongs) {
      std::vector<std::uint64_t> counts(heads.size(), 0);
      std::uint64_t all = 0;
      for (const MutantRow& row : table.mutants) {
        if (!belongs(row)) continue;
        ++all;
        counts[0] += row.kill.killed ? 1 : 0;
        for (std::size_t c = 0; c < columns.size(); ++c) counts[c + 1] += row.caught.at(columns[c]) ? 1 : 0;
      }
      std::string cells = fmt::format("{:<24} {:>7}", label, all);
      for (std::size_t c = 0; c < heads.size(); ++c)
        cells += fmt::format("  {:>{}}", counts[c], heads[c].size());
      line("{}", cells);
    };
    for (int kind = 0; kind < kind_count; ++kind)
      row_of(std::string(name(static_cast<Kind>(kind))),
             [kind](const MutantRow& row) { return row.mutant->kind == static_cast<Kind>(kind); });
    row_of("all", [](const MutantRow&) { return true; });
    std::string cells = fmt::format("{:<24} {:>7}", "false alarms", "");
    cells += fmt::format("  {:>{}}", "", heads[0].size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const FalseAlarms& counts = table.false_alarms.at(columns[c]);
      const double share = counts.runs == 0 ? 0 : 100 * double(counts.alarms) / double(counts.runs);
      cells += fmt::format("  {:>{}}", fmt::format("{:.2g}%", share), heads[c + 1].size());
    }
    line("{}", cells);
    line("");
  };
  block("usual inputs", usual);
  block("our inputs", ours);

  line("{:<44} {:>5} {:>8}  {}", "mutant", "cases", "seconds", "killed by");
  for (const MutantRow& row : table.mutants)
    line("{:<44} {:>5} {:>8.2f}  {}", row.mutant->variant.name, row.kill.cases, row.kill.seconds,
         row.kill.killed ? row.kill.reason : "not killed");
  return text;
}

}  // namespace gaugeblock
