#include "gaugeblock/verify/golden/golden.h"

#include <fmt/format.h>
#include <unistd.h>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"

namespace gaugeblock {

int run_golden(const GoldenOptions& options) {
  if (options.write.empty() == options.check.empty())
    throw InputError("golden takes either --write FOLDER or --check FOLDER");
  GoldenProgress progress;
  if (isatty(STDERR_FILENO) != 0)
    progress = [](std::size_t done, std::size_t all, const std::string& id) {
      fmt::print(stderr, "\r\033[K{}/{} {}", done, all, id);
      if (done == all) fmt::print(stderr, "\n");
    };
  if (!options.write.empty()) {
    write_golden(options.write, progress);
    return exit_pass;
  }
  const GoldenReport report = check_golden(options.check, progress);
  for (const std::string& difference : report.differences) fmt::print("{}\n", difference);
  fmt::print("{} files checked, {} differences\n", report.files, report.differences.size());
  return report.differences.empty() ? exit_pass : exit_verdict;
}

}  // namespace gaugeblock
