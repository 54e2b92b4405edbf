// gaugeblock: tells whether a kernel is wrong or merely rounding.
#include <exception>
#include <fmt/format.h>
#include <vector>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"

namespace {

/// One line, whatever an exception says.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

int report(const char* what, int code) {
  fmt::print(stderr, "gaugeblock: {}\n", one_line(what));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gaugeblock;
  CLI::App program{"Reference and verification of two operations: a scalar-gated linear recurrence and an axial "
                   "attention block.", "gaugeblock"};
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("gaugeblock ") + GAUGEBLOCK_VERSION);
  program.footer("Exit: 0 all pass; 1 a verdict of fail or suspect; 2 bad usage or input; 3 the program or the device "
                 "failed; 4 nothing to judge.");
  const std::vector<AddedCommand> commands{add_list(program), add_verify(program), add_run(program),
                                           add_judge(program), add_golden(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& request) {
    return program.exit(request);
  } catch (const CLI::CallForAllHelp& request) {
    return program.exit(request);
  } catch (const CLI::CallForVersion& request) {
    return program.exit(request);
  } catch (const CLI::ParseError& error) {
    return report(fmt::format("{}; see gaugeblock --help", error.what()).c_str(), exit_input);
  }
  try {
    for (const AddedCommand& command : commands)
      if (command.app->parsed()) return command.run();
    return exit_input;
  } catch (const InputError& error) {
    return report(error.what(), exit_input);
  } catch (const NothingToJudge& error) {
    return report(error.what(), exit_nothing);
  } catch (const std::bad_alloc&) {
    return report("out of memory", exit_device);
  } catch (const std::exception& error) {
    return report(error.what(), exit_device);
  }
}
