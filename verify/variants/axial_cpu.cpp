#include "gaugeblock/verify/variants/axial_cpu.h"

#include <utility>

#include "gaugeblock/reference/axial/fused_sequence.h"
#include "gaugeblock/reference/axial/one_pass_variance.h"
#include "gaugeblock/reference/axial/online_softmax.h"
#include "gaugeblock/reference/axial/unfused.h"

namespace gaugeblock {
namespace {

using Form = void (*)(const AxialProblem&, const AxialOutputs<float>&);

Variant cpu_variant(std::string form, std::string summary, Form run) {
  Variant variant;
  variant.operation = Operation::axial;
  variant.name = form;
  variant.backend = "cpu";
  variant.summary = std::move(summary);
  variant.claim = "axial.block";
  variant.arithmetic.form = std::move(form);
  variant.arithmetic.exp_error = host_exp_error;
  variant.declines = [](const Problem&) { return std::optional<std::string>(); };
  variant.run = [run](const Problem& problem, Outputs& outputs) {
    run(axial_view(problem), axial_view(outputs));
  };
  return variant;
}

}  // namespace

std::vector<Variant> axial_cpu_variants() {
  std::vector<Variant> variants{
      cpu_variant("unfused",
                  "The definition: sequence by sequence, whole matrices, one formula after the other.",
                  axial::unfused<float>),
      cpu_variant("online_softmax", "No stored scores: a running maximum, and sums rescaled when it grows.",
                  axial::online_softmax<float>),
      cpu_variant("one_pass_variance",
                  "LayerNorm's variance as mean(x^2) - mean(x)^2, where that does not cancel.",
                  axial::one_pass_variance<float>),
      cpu_variant(
          "fused_sequence",
          "One head and one query at a time, columns read in place; nothing is stored that need not be.",
          axial::fused_sequence<float>),
  };
  for (Variant& variant : variants)
    if (variant.name == "one_pass_variance")
      variant.declines = [](const Problem& problem) {
        return axial::one_pass_variance_declines(axial_view(problem));
      };
  return variants;
}

}  // namespace gaugeblock
