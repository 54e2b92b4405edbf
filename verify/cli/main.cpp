// gaugeblock: tells whether a kernel is wrong or merely rounding.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"
#include "gaugeblock/verify/cli/progress.h"

namespace {

/// One line, whatever an exception says.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

int report(const char* what, int code) {
  gaugeblock::say(fmt::format("gaugeblock: {}", one_line(what)));
  return code;
}

/// What a command printed has arrived, or the program has failed; a verdict stands all the same.
int finish(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report("expected to write to stdout; it is full or closed, and the output is lost",
                code == gaugeblock::exit_verdict ? code : gaugeblock::exit_device);
}

/// A first word that is no command, or nothing.
std::string no_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2) return {};
  const std::string first = argv[1];
  std::string names;
  for (const CLI::App* each : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == first) return {};
    names += (names.empty() ? "" : ", ") + each->get_name();
  }
  if (first == "-h" || first == "--help" || first == "--version") return {};
  return fmt::format("expected a command ({}); found '{}'; see gaugeblock --help", names, first);
}

constexpr gaugeblock::Index most_jobs = 1024;

/// An option that takes a number from 1 to `most`, in decimal: the library's own would read 010 as 8.
template <class Number>
void add_count(CLI::App* app, const std::string& option, Number& target, gaugeblock::Index most,
               const std::string& description) {
  app->add_option_function<std::string>(
      option,
      [&target, option, most](const std::string& text) {
        target = static_cast<Number>(gaugeblock::parse_index(text, option, 1, most));
      },
      description);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gaugeblock;
  CLI::App program{
      "Reference and verification of two operations: a scalar-gated linear recurrence and an axial "
      "attention block.",
      "gaugeblock"};
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("gaugeblock ") + GAUGEBLOCK_VERSION);
  program.footer(
      "Exit: 0 all pass; 1 a verdict of fail or suspect; 2 bad usage or input; 3 the program or the device "
      "failed; 4 nothing to judge.");

  std::function<int()> command;  // set by the subcommand that is given
  ListOptions list;
  CLI::App* app = program.add_subcommand("list", "Every variant: what it is, what its bound rests on.");
  app->add_option("--op", list.op, "recurrence or axial; both when left out");
  app->add_option("--backend", list.backend, "cpu, simt, cuda or all");
  app->add_flag("--explain", list.explain,
                "instead: which variant 'auto' takes on the quoted sizes, and why");
  app->add_flag("--json", list.json, "JSON on stdout");
  app->callback([&] { command = [&] { return run_list(list); }; });

  VerifyOptions verify;
  verify.jobs = std::max(1U, std::thread::hardware_concurrency());
  app = program.add_subcommand(
      "verify", "Judge variants on generated problems. Ctrl-C ends it with the report of what was judged.");
  app->add_option("--op", verify.op, "recurrence or axial; both when left out");
  app->add_option("--variant", verify.variant, "name or shell pattern");
  app->add_option("--backend", verify.backend, "cpu, simt, cuda or all");
  app->add_option_function<std::string>(
      "--cases", [&](const std::string& text) { verify.cases = parse_unsigned(text, "--cases"); },
      "number of generated cases (1000)");
  app->add_option("--time", verify.seconds, "instead: seconds during which cases start; no large ones");
  app->add_option_function<std::string>(
      "--seed", [&](const std::string& text) { verify.seed = parse_unsigned(text, "--seed"); },
      "seed of the campaign (1)");
  app->add_option("--case", verify.given, "this case instead of generated ones, with every relation");
  add_count(app, "--repeats", verify.repeats, 1'000'000,
            "how often each run is repeated, for the same bits (1)");
  app->add_option("--report", verify.report_folder, "folder for report.json and report.txt");
  add_count(app, "--jobs", verify.jobs, most_jobs, "threads (all cores)");
  app->add_flag("--json", verify.json, "JSON on stdout instead of the table");
  app->callback([&] { command = [&] { return run_verify(verify); }; });

  RunOptions run;
  app = program.add_subcommand("run", "Run one variant on the problem in a file.");
  app->add_option("--variant", run.variant, "name of the variant")->required();
  app->add_option("--backend", run.backend, "cpu, simt or cuda");
  app->add_option("--input", run.input, "safetensors file with the inputs")->required();
  app->add_option("--output", run.output, "safetensors file to write")->required();
  app->callback([&] { command = [&] { return run_run(run); }; });

  JudgeOptions judge;
  app = program.add_subcommand("judge", "Judge the outputs of any implementation, from a file.");
  app->add_option("--input", judge.input,
                  "safetensors file with the inputs, and golden values if it has them")
      ->required();
  app->add_option("--actual", judge.actual, "safetensors file with the outputs to judge")->required();
  app->add_flag("--proved-only", judge.proved_only, "judge by the proved bound alone");
  app->add_flag("--json", judge.json, "JSON on stdout");
  app->callback([&] { command = [&] { return run_judge(judge); }; });

  GoldenOptions golden;
  app = program.add_subcommand("golden", "Write the golden files, or check them against the reference.");
  app->add_option("--write", golden.write, "folder to write");
  app->add_option("--check", golden.check, "folder to check");
  app->callback([&] { command = [&] { return run_golden(golden); }; });

  BenchOptions bench;
  app = program.add_subcommand("bench", "Time variants, as ratios to the fastest in the same run.");
  app->add_option("--op", bench.op, "recurrence or axial; both when left out");
  app->add_option("--variant", bench.variant, "name or shell pattern");
  app->add_option("--backend", bench.backend, "cpu or cuda");
  app->add_option("--case", bench.given, "time this case instead of the quoted sizes");
  app->add_flag("--json", bench.json, "JSON on stdout instead of the table");
  app->callback([&] { command = [&] { return run_bench(bench); }; });

  MutantsOptions mutants;
  mutants.jobs = verify.jobs;
  app = program.add_subcommand("mutants", "Which check catches which deliberately wrong variant.");
  add_count(app, "--cases", mutants.cases, std::numeric_limits<int>::max(),
            "cases for the columns of single checks (40)");
  add_count(app, "--jobs", mutants.jobs, most_jobs, "threads (all cores)");
  app->add_flag("--json", mutants.json, "JSON on stdout");
  app->callback([&] { command = [&] { return run_mutants(mutants); }; });

  if (const std::string found = no_command(program, argc, argv); !found.empty())
    return report(found.c_str(), exit_input);
  try {
    program.parse(argc, argv);
  } catch (const InputError& error) {
    return report(error.what(), exit_input);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return program.exit(error);
    return report(fmt::format("{}; see gaugeblock --help", error.what()).c_str(), exit_input);
  }
  try {
    return finish(command());
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
