// The commands of the program `gaugeblock`, each returning its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace gaugeblock {

/// Exit codes: what a script may rely on.
enum ExitCode : int {
  exit_pass = 0,
  exit_verdict = 1,    ///< a verdict of fail or suspect
  exit_input = 2,      ///< bad usage or bad input
  exit_device = 3,     ///< the program or the device failed
  exit_nothing = 4,    ///< nothing to judge
};

/// Each adds its subcommand to the program and returns what runs when it is given.
using Command = std::function<int()>;
struct AddedCommand {
  CLI::App* app;
  Command run;
};
AddedCommand add_list(CLI::App& program);
AddedCommand add_verify(CLI::App& program);
AddedCommand add_run(CLI::App& program);
AddedCommand add_judge(CLI::App& program);
AddedCommand add_golden(CLI::App& program);

}  // namespace gaugeblock
