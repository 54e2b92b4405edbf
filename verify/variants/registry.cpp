#include <algorithm>
#include <fmt/format.h>
#include <fnmatch.h>
#include <iterator>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/axial_cpu.h"
#include "gaugeblock/verify/variants/recurrence_cpu.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

std::string arithmetic_text(const Arithmetic& arithmetic) {
  std::string text = "float32 " + arithmetic.form;
  if (arithmetic.chunk > 0) text += fmt::format("(chunk {})", arithmetic.chunk);
  if (arithmetic.exp_error > 0) text += fmt::format(", exp within {:g} u", arithmetic.exp_error);
  if (arithmetic.reciprocal_root) text += ", reciprocal root";
  if (arithmetic.flush_to_zero) text += ", flush to zero";
  return text;
}

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> all;
    for (std::vector<Variant> some : {recurrence_cpu_variants(), axial_cpu_variants()})
      std::move(some.begin(), some.end(), std::back_inserter(all));
    return all;
  }();
  return variants;
}

std::vector<Variant> select_variants(std::optional<Operation> operation, const std::string& name_pattern,
                                     const std::string& backend) {
  std::vector<Variant> selected;
  for (const Variant& variant : all_variants()) {
    if (operation && variant.operation != *operation) continue;
    if (backend != "all" && variant.backend != backend) continue;
    if (fnmatch(name_pattern.c_str(), variant.name.c_str(), 0) != 0) continue;
    selected.push_back(variant);
  }
  if (selected.empty())
    throw InputError(fmt::format("no variant{} on backend '{}' matches '{}'; 'gaugeblock list' shows what there is",
                                 operation ? " of " + std::string(name(*operation)) : std::string(), backend,
                                 name_pattern));
  return selected;
}

}  // namespace gaugeblock
