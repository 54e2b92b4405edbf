#include <array>
#include <iterator>
#include <utility>

#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/verify/variants/axial_cpu.h"
#include "mutant.h"

namespace gaugeblock {

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, kind_count> names{"indexing and tails",
                                                           "order of gate and write",
                                                           "prefix off by one",
                                                           "carry-in",
                                                           "reset",
                                                           "beta",
                                                           "chunk borders",
                                                           "last lane, row, head",
                                                           "axis or stride",
                                                           "rescaling",
                                                           "eps and divisor",
                                                           "precision",
                                                           "synchronisation",
                                                           "unwritten memory",
                                                           "silent launch",
                                                           "aliasing",
                                                           "nondeterminism",
                                                           "narrow offsets",
                                                           "cheats"};
  return names[static_cast<std::size_t>(kind)];
}

Mutant form_mutant(Operation operation, const std::string& form, std::string id, Kind kind, std::string fault,
                   std::string seen, std::string needs, bool hides,
                   std::function<void(const Problem&, Outputs&)> run) {
  Mutant mutant;
  Variant& variant = mutant.variant;
  variant.operation = operation;
  variant.name = std::move(id);
  variant.backend = "cpu";
  variant.summary = std::move(fault);
  variant.claim = operation == Operation::axial ? "axial.block" : "recurrence." + form;
  variant.arithmetic.form = form;
  if (form == "chunked") variant.arithmetic.chunk = recurrence::default_chunk;
  if (operation == Operation::axial) variant.arithmetic.exp_error = host_exp_error;
  if (operation == Operation::recurrence)  // what the form without the fault promises
    variant.promises = {.prefix = true, .split = form == "sequential"};
  variant.declines = [](const Problem&) { return std::optional<std::string>(); };
  variant.run = std::move(run);
  mutant.kind = kind;
  mutant.seen = std::move(seen);
  mutant.needs = std::move(needs);
  mutant.hides = hides;
  return mutant;
}

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> mutants = [] {
    std::vector<Mutant> all;
    for (std::vector<Mutant> (*list)() :
         {recurrence_form_mutants, axial_form_mutants, run_mutants, kernel_mutants}) {
      std::vector<Mutant> some = list();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }();
  return mutants;
}

}  // namespace gaugeblock
