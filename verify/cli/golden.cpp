#include <fmt/format.h>
#include <memory>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cli/commands.h"

namespace gaugeblock {

AddedCommand add_golden(CLI::App& program) {
  CLI::App* app = program.add_subcommand("golden", "Write or check the golden files.");
  return {app, []() -> int { throw InputError("golden: not built"); }};
}

}  // namespace gaugeblock
