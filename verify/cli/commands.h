// The commands of the program `gaugeblock`: what each takes, and its exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Exit codes: what a script may rely on.
enum ExitCode : int {
  exit_pass = 0,
  exit_verdict = 1,  ///< a verdict of fail or suspect
  exit_input = 2,    ///< bad usage or bad input
  exit_device = 3,   ///< the program or the device failed
  exit_nothing = 4,  ///< nothing to judge
};

struct ListOptions {
  std::string op;  ///< both operations when empty
  std::string backend = "all";
  bool explain = false;  ///< instead: which variant `auto` takes, and why
  bool json = false;
};
int run_list(const ListOptions& options);

struct VerifyOptions {
  std::string op;  ///< both operations when empty
  std::string variant = "*";
  std::string backend = "cpu";
  std::string report_folder;
  std::optional<std::uint64_t> cases;
  std::optional<double> seconds;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> given;  ///< case texts instead of generated cases
  unsigned jobs = 1;
  unsigned repeats = 1;  ///< how often each run is repeated for the same bits
  bool json = false;
};
int run_verify(const VerifyOptions& options);

struct RunOptions {
  std::string variant;
  std::string backend = "cpu";
  std::string input;
  std::string output;
};
int run_run(const RunOptions& options);

struct JudgeOptions {
  std::string input;
  std::string actual;
  bool proved_only = false;
  bool json = false;
};
int run_judge(const JudgeOptions& options);

struct GoldenOptions {
  std::string write;  ///< folder to write, or empty
  std::string check;  ///< folder to check, or empty
};
int run_golden(const GoldenOptions& options);

/// The sizes that people quote, as case texts.
const std::vector<std::string>& quoted_cases(Operation operation);

/// The variants that are asked for, of the operations of the given cases, or where there are none of the one
/// named (empty: of both). Throws InputError when a case is of another operation than the one named, and when
/// there is no such variant for a case.
std::vector<Variant> select_for(const std::vector<Case>& given, const std::string& op,
                                const std::string& variant, const std::string& backend);

struct BenchOptions {
  std::string op;  ///< both operations when empty
  std::string variant = "*";
  std::string backend = "cpu";
  std::vector<std::string> given;  ///< case texts instead of the quoted sizes
  bool json = false;
};
int run_bench(const BenchOptions& options);

struct MutantsOptions {
  std::uint64_t cases = 40;  ///< for the columns of single checks
  unsigned jobs = 1;
  bool json = false;
};
/// Only in programs built with the tests.
int run_mutants(const MutantsOptions& options);

}  // namespace gaugeblock
