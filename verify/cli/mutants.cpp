#include "gaugeblock/verify/cli/commands.h"

#if defined(GAUGEBLOCK_HAS_MUTANTS)

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gaugeblock/verify/cli/progress.h"
#include "kill_table.h"

namespace gaugeblock {

int run_mutants(const MutantsOptions& options) {
  KillTableOptions table_options;
  table_options.cases = options.cases;
  table_options.jobs = options.jobs;
  table_options.progress = progress_line("tasks");
  const KillTable table = kill_table(table_options);
  if (options.json)
    fmt::print("{}\n", kill_table_json(table).dump(2));
  else
    fmt::print("{}", kill_table_text(table));
  for (const MutantRow& row : table.mutants)
    if (!row.kill.killed) return exit_verdict;
  return exit_pass;
}

}  // namespace gaugeblock

#else

#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {

int run_mutants(const MutantsOptions&) {
  throw DeviceFailure(
      "mutants: this program was built without its tests (GAUGEBLOCK_BUILD_TESTS=OFF), and has none");
}

}  // namespace gaugeblock

#endif
