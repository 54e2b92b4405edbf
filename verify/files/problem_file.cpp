#include "gaugeblock/verify/files/problem_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

using Names = std::vector<std::string_view>;

const Names recurrence_inputs{"q", "k", "v", "gate", "beta", "initial_state"};
const Names axial_inputs{"x",
                         "row_norm.weight",
                         "row_norm.bias",
                         "row_qkv.weight",
                         "row_out.weight",
                         "row_out.bias",
                         "col_norm.weight",
                         "col_norm.bias",
                         "col_qkv.weight",
                         "col_out.weight",
                         "col_out.bias"};
const Names recurrence_outputs{"y", "final_state"};
const Names axial_outputs{"y", "row"};
const std::array<std::string, 3> golden_prefixes{"expected.", "bound.", "sigma."};

const Names metadata_keys{"gaugeblock.format", "gaugeblock.op",      "gaugeblock.case",
                          "gaugeblock.claim",  "gaugeblock.heads",   "gaugeblock.eps",
                          "gaugeblock.passes", "gaugeblock.dropout", "gaugeblock.gate_space"};

bool contains(const Names& names, std::string_view name) {
  for (const auto legal : names)
    if (legal == name) return true;
  return false;
}

const Names& input_names(Operation operation) {
  return operation == Operation::recurrence ? recurrence_inputs : axial_inputs;
}

/// Whether a file of this operation may hold a tensor of this name.
bool is_known(Operation operation, std::string_view name) {
  if (contains(input_names(operation), name)) return true;
  for (const std::string_view prefix : golden_prefixes)
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return contains(operation == Operation::recurrence ? recurrence_outputs : axial_outputs, name);
}

void refuse_unknown_tensors(const SafetensorsFile& file, Operation operation) {
  for (const auto& [tensor, content] : file.tensors) {
    if (is_known(operation, tensor)) continue;
    throw InputError(fmt::format(
        "{}: expected only tensors of the operation {} ({}, its outputs and golden values); found {}{}",
        file.name, name(operation), listed(input_names(operation)), quoted_text(tensor),
        suggestion(tensor, input_names(operation))));
  }
}

/// The value of "gaugeblock.<key>", when it is there.
std::optional<std::string> attribute(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata.find("gaugeblock." + key);
  if (found == file.metadata.end()) return std::nullopt;
  return found->second;
}

[[noreturn]] void refuse_attribute(const SafetensorsFile& file, const std::string& key,
                                   const std::string& expected, const std::string& found) {
  throw InputError(fmt::format("{}: metadata gaugeblock.{}: expected {}; found {}", file.name, key, expected,
                               quoted_text(found)));
}

/// `parse(text)`, any complaint of it made one about this attribute.
template <class Parse>
auto parse_attribute(const SafetensorsFile& file, const std::string& key, const std::string& text,
                     const std::string& expected, Parse&& parse) {
  try {
    return parse(text);
  } catch (const InputError&) {
    refuse_attribute(file, key, expected, text);
  }
}

Operation find_operation(const SafetensorsFile& file) {
  if (const auto text = attribute(file, "op"))
    return parse_attribute(file, "op", *text, "recurrence or axial", parse_operation);
  const bool recurrence =
      file.tensors.contains("q") || file.tensors.contains("k") || file.tensors.contains("gate");
  const bool axial = file.tensors.contains("x");
  if (recurrence == axial)
    throw InputError(fmt::format(
        "{}: expected the inputs of one operation (recurrence: {}; axial: {}); found {}", file.name,
        listed(recurrence_inputs), listed(axial_inputs), recurrence ? "those of both" : "none of them"));
  return axial ? Operation::axial : Operation::recurrence;
}

Index parse_heads(const SafetensorsFile& file, const std::string& text) {
  return parse_attribute(file, "heads", text, "a whole number from 1", [](const std::string& number) {
    return parse_index(number, "heads", 1, std::numeric_limits<Index>::max());
  });
}

Attributes read_attributes(const SafetensorsFile& file, Operation operation) {
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with("gaugeblock.") && !contains(metadata_keys, key))
      throw InputError(fmt::format("{}: metadata: expected one of {}; found {}{}", file.name,
                                   listed(metadata_keys), quoted_text(key), suggestion(key, metadata_keys)));
  if (const auto text = attribute(file, "format"); text && *text != "1")
    refuse_attribute(file, "format", "1", *text);
  if (const auto text = attribute(file, "gate_space"); text && *text != "linear")
    refuse_attribute(file, "gate_space", "linear (gates are multipliers, not logarithms)", *text);
  if (const auto text = attribute(file, "dropout")) {
    const std::string expected = "0 (the block is defined for inference)";
    if (parse_attribute(file, "dropout", *text, expected,
                        [](const std::string& number) { return parse_float(number, "dropout"); }) != 0)
      refuse_attribute(file, "dropout", expected, *text);
  }

  Attributes attributes;
  if (operation == Operation::recurrence) return attributes;
  const auto heads = attribute(file, "heads");
  if (!heads)
    throw InputError(
        file.name +
        ": metadata gaugeblock.heads: expected the number of attention heads; found none (the shapes of "
        "the tensors do not tell it)");
  attributes.heads = parse_heads(file, *heads);
  if (const auto text = attribute(file, "eps")) {
    const std::string expected = "a finite number, not negative";
    attributes.eps = parse_attribute(file, "eps", *text, expected,
                                     [](const std::string& number) { return parse_float(number, "eps"); });
    if (!(attributes.eps >= 0)) refuse_attribute(file, "eps", expected, *text);
  }
  if (const auto text = attribute(file, "passes"))
    attributes.passes = parse_attribute(file, "passes", *text, "both, row or col", parse_passes);
  return attributes;
}

/// A float32 tensor of a file between guard bands.
Tensor float32_tensor(const SafetensorsFile& file, const std::string& tensor, const FileTensor& content) {
  const auto* values = std::get_if<std::vector<float>>(&content.values);
  if (values == nullptr)
    throw InputError(fmt::format("{}: tensor {}: expected F32; found F64", file.name, quoted_text(tensor)));
  Tensor result = Tensor::contiguous(content.shape);
  result.assign(*values);
  return result;
}

void check_shape(const SafetensorsFile& file, const std::string& tensor, const FileTensor& content,
                 const std::vector<Index>& expected) {
  if (content.shape != expected)
    throw InputError(fmt::format("{}: tensor {}: expected shape {}; found {}", file.name, quoted_text(tensor),
                                 shape_text(expected), shape_text(content.shape)));
}

const std::vector<double>& float64_values(const SafetensorsFile& file, const std::string& tensor,
                                          const std::vector<Index>& shape) {
  const FileTensor& content = file.tensors.at(tensor);
  check_shape(file, tensor, content, shape);
  const auto* values = std::get_if<std::vector<double>>(&content.values);
  if (values == nullptr)
    throw InputError(fmt::format("{}: tensor {}: expected F64; found F32", file.name, quoted_text(tensor)));
  return *values;
}

/// A bound is a number from 0 to infinity; anything else would pass or fail whatever it is compared with.
void check_bounds(const SafetensorsFile& file, const std::string& tensor, const std::vector<double>& values,
                  const std::vector<Index>& shape) {
  for (std::size_t element = 0; element < values.size(); ++element)
    if (!(values[element] >= 0))
      throw InputError(fmt::format("{}: tensor {}: expected no value below 0 and no NaN; found {} at {}",
                                   file.name, quoted_text(tensor), values[element],
                                   shape_text(subscripts(shape, static_cast<Index>(element)))));
}

}  // namespace

Problem read_problem(const SafetensorsFile& file) {
  Problem problem;
  problem.operation = find_operation(file);
  problem.attributes = read_attributes(file, problem.operation);
  refuse_unknown_tensors(file, problem.operation);
  for (const auto& [tensor, content] : file.tensors)
    if (contains(input_names(problem.operation), tensor))
      problem.inputs.emplace(tensor, float32_tensor(file, tensor, content));
  try {
    check_problem(problem);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", file.name, error.what()));
  }
  if (problem.operation == Operation::recurrence) {
    const Index heads = problem.input("gate").shape.at(2);
    if (const auto text = attribute(file, "heads"); text && parse_heads(file, *text) != heads)
      refuse_attribute(file, "heads", fmt::format("{}, as the tensors have", heads), *text);
  }
  problem.case_text = attribute(file, "case").value_or("");
  return problem;
}

SafetensorsFile problem_file(const Problem& problem) {
  SafetensorsFile file;
  file.name = problem.case_text.empty() ? "problem" : problem.case_text;
  file.metadata = {{"gaugeblock.format", "1"}, {"gaugeblock.op", std::string(name(problem.operation))}};
  if (!problem.case_text.empty()) file.metadata["gaugeblock.case"] = problem.case_text;
  if (problem.operation == Operation::recurrence) {
    file.metadata["gaugeblock.gate_space"] = "linear";
  } else {
    file.metadata["gaugeblock.heads"] = std::to_string(problem.attributes.heads);
    file.metadata["gaugeblock.eps"] = float_text(problem.attributes.eps);
    file.metadata["gaugeblock.passes"] = name(problem.attributes.passes);
  }
  for (const auto& [tensor, content] : problem.inputs)
    file.tensors.emplace(tensor, FileTensor{content.shape, content.values()});
  return file;
}

Outputs read_outputs(const SafetensorsFile& file, const Problem& problem) {
  refuse_unknown_tensors(file, problem.operation);
  const auto shapes = output_shapes(problem);
  if (file.tensors.contains("row") && !shapes.contains("row"))
    throw InputError(fmt::format(
        "{}: tensor \"row\": expected only where both passes are computed; the problem has one", file.name));
  Outputs outputs;
  for (const auto& [tensor, shape] : shapes) {
    const auto found = file.tensors.find(tensor);
    if (found == file.tensors.end()) {
      if (tensor == "row") continue;  // the one output that nobody has to give
      throw InputError(fmt::format("{}: expected the output {} {}; found no tensor of this name", file.name,
                                   quoted_text(tensor), shape_text(shape)));
    }
    check_shape(file, tensor, found->second, shape);
    outputs.emplace(tensor, float32_tensor(file, tensor, found->second));
  }
  return outputs;
}

void add_outputs(SafetensorsFile& file, const Outputs& outputs) {
  for (const auto& [tensor, content] : outputs)
    file.tensors.insert_or_assign(tensor, FileTensor{content.shape, content.values()});
}

GoldenData read_golden(const SafetensorsFile& file, const Problem& problem) {
  GoldenData golden;
  for (const auto& [output, shape] : output_shapes(problem)) {
    std::string first_found;
    for (const auto& prefix : golden_prefixes)
      if (first_found.empty() && file.tensors.contains(prefix + output)) first_found = prefix + output;
    if (first_found.empty()) continue;
    for (const auto& prefix : golden_prefixes)
      if (!file.tensors.contains(prefix + output))
        throw InputError(fmt::format("{}: expected the tensor {} beside {}; found none", file.name,
                                     quoted_text(prefix + output), quoted_text(first_found)));
    GoldenValues& values = golden[output];
    values.expected = float64_values(file, "expected." + output, shape);
    values.bound = float64_values(file, "bound." + output, shape);
    values.sigma = float64_values(file, "sigma." + output, shape);
    check_bounds(file, "bound." + output, values.bound, shape);
    check_bounds(file, "sigma." + output, values.sigma, shape);
  }
  return golden;
}

std::string golden_claim(const SafetensorsFile& file) {
  return attribute(file, "claim").value_or("");
}

void add_golden(SafetensorsFile& file, const GoldenData& golden, const Problem& problem) {
  const auto shapes = output_shapes(problem);
  for (const auto& [output, values] : golden) {
    const auto& shape = shapes.at(output);
    file.tensors.insert_or_assign("expected." + output, FileTensor{shape, values.expected});
    file.tensors.insert_or_assign("bound." + output, FileTensor{shape, values.bound});
    file.tensors.insert_or_assign("sigma." + output, FileTensor{shape, values.sigma});
  }
}

}  // namespace gaugeblock
