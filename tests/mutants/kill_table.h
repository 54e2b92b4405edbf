// Which check catches which mutant, from runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "mutant.h"

namespace gaugeblock {

/// What the default campaign of `gaugeblock verify` does with a mutant.
struct Kill {
  bool killed = false;
  std::uint64_t cases = 0;  ///< up to and with the one that kills it
  double seconds = 0;       ///< of one core, for these
  std::string reason;       ///< "proved", "likely", "run property", "relation X", "interpreter"
  std::string message;
  std::string case_text;
};

/// Runs cases of the default campaign, one after the other, until the mutant does not pass.
Kill kill(const Mutant& mutant, std::uint64_t largest_number_of_cases);

/// Inputs as people usually draw them: random ones at one size, the quoted one (a smaller one for the
/// interpreter).
Case usual_case(Operation operation, const std::string& backend, std::uint64_t trial);
inline constexpr std::uint64_t usual_trials = 5;

struct MutantRow {
  const Mutant* mutant = nullptr;
  Kill kill;
  std::map<std::string, bool> caught;  ///< by column
};

/// How often a check rejects correct variants.
struct FalseAlarms {
  std::uint64_t runs = 0;
  std::uint64_t alarms = 0;
};

struct KillTable {
  std::vector<std::string> columns;
  std::vector<MutantRow> mutants;
  std::map<std::string, FalseAlarms> false_alarms;  ///< by column
  std::uint64_t cases = 0;                          ///< of our inputs, for each operation
};

struct KillTableOptions {
  std::uint64_t cases = 40;         ///< of our inputs, for the columns of single checks
  std::uint64_t kill_cases = 1000;  ///< the default campaign of `verify`
  unsigned jobs = 1;
  std::function<void(std::uint64_t done, std::uint64_t of)> progress;  ///< may be empty
};

KillTable kill_table(const KillTableOptions& options);

nlohmann::ordered_json kill_table_json(const KillTable& table);

/// By kind, as text.
std::string kill_table_text(const KillTable& table);

}  // namespace gaugeblock
