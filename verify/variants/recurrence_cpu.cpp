#include "gaugeblock/verify/variants/recurrence_cpu.h"

#include <cmath>
#include <utility>

#include "gaugeblock/reference/recurrence/chunked.h"
#include "gaugeblock/reference/recurrence/masked_attention.h"
#include "gaugeblock/reference/recurrence/materialized.h"
#include "gaugeblock/reference/recurrence/prefix_product.h"
#include "gaugeblock/reference/recurrence/prefix_product_segmented.h"
#include "gaugeblock/reference/recurrence/scan.h"
#include "gaugeblock/reference/recurrence/sequential.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

using Form = void (*)(const RecurrenceProblem&, const RecurrenceOutputs<float>&);

Variant cpu_variant(std::string name, std::string summary, Arithmetic arithmetic, Promises promises,
                    Form form) {
  Variant variant;
  variant.operation = Operation::recurrence;
  variant.name = std::move(name);
  variant.backend = "cpu";
  variant.summary = std::move(summary);
  variant.claim = "recurrence." + arithmetic.form;
  variant.arithmetic = std::move(arithmetic);
  variant.promises = promises;
  variant.declines = [](const Problem&) { return std::optional<std::string>(); };
  variant.run = [form](const Problem& problem, Outputs& outputs) {
    form(recurrence_view(problem), recurrence_view(outputs));
  };
  return variant;
}

/// `materialized` and `scan` keep every state of a (b,h) at once.
std::optional<std::string> states_decline(const Problem& problem) {
  const RecurrenceProblem view = recurrence_view(problem);
  try {
    require_memory(static_cast<double>(view.steps()) * static_cast<double>(view.key_size()) *
                       static_cast<double>(view.value_size()),
                   "states of one head");
  } catch (const InputError& reason) {
    return reason.what();
  }
  return std::nullopt;
}

void chunked_by_default(const RecurrenceProblem& problem, const RecurrenceOutputs<float>& out) {
  recurrence::chunked(problem, out);
}

}  // namespace

std::vector<Variant> recurrence_cpu_variants() {
  constexpr Promises none{};
  constexpr Promises prefix{.prefix = true};
  constexpr Promises prefix_and_split{.prefix = true, .split = true};
  std::vector<Variant> variants{
      cpu_variant("sequential", "The definition: one step after the other.", {.form = "sequential"},
                  prefix_and_split, recurrence::sequential<float>),
      cpu_variant("materialized", "Every state is stored first, then contracted with its query.",
                  {.form = "sequential"}, prefix_and_split, recurrence::materialized<float>),
      cpu_variant("masked_attention", "No state: every output looks back over all steps, weighted by decays.",
                  {.form = "masked_attention"}, prefix, recurrence::masked_attention<float>),
      cpu_variant("prefix_product",
                  "The closed form: gates taken out as prefix products, writes divided by them.",
                  {.form = "prefix_product"}, prefix, recurrence::prefix_product<float>),
      cpu_variant("prefix_product_segmented",
                  "The closed form, restarted before the products leave their range.",
                  {.form = "prefix_product_segmented"}, prefix, recurrence::prefix_product_segmented<float>),
      cpu_variant("chunked", "The state from chunk to chunk, masked attention inside a chunk.",
                  {.form = "chunked", .chunk = recurrence::default_chunk}, prefix, chunked_by_default),
      cpu_variant("scan", "An associative scan over pairs (gate, write) in a balanced tree.",
                  {.form = "scan"}, none, recurrence::scan<float>),
  };
  for (Variant& variant : variants) {
    if (variant.name == "materialized" || variant.name == "scan") variant.declines = states_decline;
    // A gate of zero starts a segment with 0 · (P · W): a non-finite past stays non-finite, as in the
    // definition.
    if (variant.name != "prefix_product") continue;
    variant.declines = [](const Problem& problem) {
      return recurrence::prefix_product_declines(recurrence_view(problem));
    };
  }
  return variants;
}

}  // namespace gaugeblock
