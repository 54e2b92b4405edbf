#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/axial_cpu.h"
#include "gaugeblock/verify/variants/gpu_variants.h"
#include "gaugeblock/verify/variants/recurrence_cpu.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

Arithmetic unknown_arithmetic(Operation operation) {
  Arithmetic arithmetic{.form = "any_form"};
  // CUDA's expf, the widest in common use: 2 ulp, which is within 5 u of the true value.
  if (operation == Operation::axial) {
    arithmetic.exp_error = 5;
    arithmetic.reciprocal_root = true;
  }
  return arithmetic;
}

std::string arithmetic_text(const Arithmetic& arithmetic) {
  std::string text = "float32 " + arithmetic.form;
  if (arithmetic.chunk > 0) text += fmt::format("(chunk {})", arithmetic.chunk);
  if (arithmetic.tree_products) text += ", gates multiplied in a tree";
  if (arithmetic.exp_error > 0) text += fmt::format(", exp within {:g} u", arithmetic.exp_error);
  if (arithmetic.reciprocal_root) text += ", reciprocal root";
  if (arithmetic.flush_to_zero) text += ", flush to zero";
  if (arithmetic.operands == Operands::split_half) text += ", operands split into two float16";
  return text;
}

namespace {

/// The status of a claim, or nothing when there is no such claim.
std::optional<std::string> find_status(const std::string& claim) {
  // The claims and what stands behind each are in proofs_notes/README.md; a test keeps both lists the same.
  static const std::map<std::string, std::string> families{
      {"recurrence.sequential", "proved"},
      {"recurrence.masked_attention", "proved"},
      {"recurrence.chunked", "proved"},
      {"recurrence.chunked_split_half", "assumed"},
      {"recurrence.scan", "proved"},
      {"recurrence.prefix_product", "proved"},
      {"recurrence.prefix_product_segmented", "proved"},
      {"recurrence.any_form", "proved"},
      {"axial.block", "proved"},
      {"axial.any_form", "proved"},
      {"axial.split_half", "assumed"},
  };
  static const std::vector<std::string> parts{".output", ".state", ".running"};  // of a family
  std::string family = claim;
  for (const std::string& part : parts)
    if (claim.ends_with(part)) family.resize(claim.size() - part.size());
  const auto found = families.find(family);
  if (found == families.end()) return std::nullopt;
  return found->second;
}

}  // namespace

bool is_claim(const std::string& claim) {
  return find_status(claim).has_value();
}

std::string claim_status(const std::string& claim) {
  const std::optional<std::string> status = find_status(claim);
  if (!status) throw std::logic_error("no claim is called '" + claim + "'");
  return *status;
}

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> all;
    for (std::vector<Variant> some : {recurrence_cpu_variants(), axial_cpu_variants(), gpu_variants()})
      std::move(some.begin(), some.end(), std::back_inserter(all));
    std::stable_sort(all.begin(), all.end(),
                     [](const Variant& a, const Variant& b) { return a.operation < b.operation; });
    return all;
  }();
  return variants;
}

#ifdef GAUGEBLOCK_HAS_CUDA
ChosenVariant choose_variant(const Problem& problem) {
  const auto [kernel, reason] = choose_kernel_name(problem);
  for (const Variant& variant : all_variants())
    if (variant.operation == problem.operation && variant.backend == "cuda" && variant.name == kernel)
      return {&variant, reason};
  return {nullptr, reason};
}
#else
ChosenVariant choose_variant(const Problem&) {
  throw DeviceFailure("backend cuda: this build has none; build with the CUDA toolkit to have it");
}
std::vector<std::pair<std::string, std::string> > choice_rules(Operation) {
  return {};
}
#endif

namespace {

Variant auto_variant(Operation operation) {
  Variant variant;
  variant.operation = operation;
  variant.name = "auto";
  variant.backend = "cuda";
  variant.summary = "the fastest variant that takes the problem";
  variant.choose = &choose_variant;
  variant.declines = [](const Problem& problem) -> std::optional<std::string> {
    const ChosenVariant chosen = choose_variant(problem);
    return chosen.variant == nullptr ? std::optional(chosen.reason) : chosen.variant->declines(problem);
  };
  variant.run = [](const Problem& problem, Outputs& outputs) {
    choose_variant(problem).variant->run(problem, outputs);
  };
  variant.prepare = [](const Problem& problem) { return choose_variant(problem).variant->prepare(problem); };
  return variant;
}

}  // namespace

std::vector<Variant> select_variants(std::optional<Operation> operation, const std::string& name_pattern,
                                     const std::string& backend) {
  static const std::vector<std::string> backends{"cpu", "simt", "cuda", "all"};
  if (std::find(backends.begin(), backends.end(), backend) == backends.end())
    throw InputError(fmt::format("backend: expected one of cpu, simt, cuda, all; found '{}'", backend));
#ifndef GAUGEBLOCK_HAS_CUDA
  if (backend == "cuda")
    throw DeviceFailure("backend cuda: this build has none; build with the CUDA toolkit to have it");
#endif
  std::vector<Variant> selected;
  if (name_pattern == "auto") {
    if (backend != "cuda")
      throw InputError(
          fmt::format("'auto' chooses among the variants of the backend cuda, not '{}'", backend));
    for (const Operation each : {Operation::recurrence, Operation::axial})
      if (!operation || each == *operation) selected.push_back(auto_variant(each));
    return selected;
  }
  for (const Variant& variant : all_variants()) {
    if (operation && variant.operation != *operation) continue;
    if (backend != "all" && variant.backend != backend) continue;
    if (fnmatch(name_pattern.c_str(), variant.name.c_str(), 0) != 0) continue;
    selected.push_back(variant);
  }
  if (selected.empty())
    throw InputError(fmt::format(
        "no variant{} on backend '{}' matches '{}'; 'gaugeblock list' shows what there is",
        operation ? " of " + std::string(name(*operation)) : std::string(), backend, name_pattern));
  return selected;
}

}  // namespace gaugeblock
