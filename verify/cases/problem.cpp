#include "gaugeblock/verify/cases/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 2> operation_names{{
    {"recurrence", Operation::recurrence},
    {"axial", Operation::axial},
}};

constexpr std::array<std::pair<std::string_view, AxialPasses>, 3> passes_names{{
    {"both", AxialPasses::both},
    {"row", AxialPasses::row},
    {"col", AxialPasses::col},
}};

template <class Names, class Value>
std::string_view name_in(const Names& names, Value value) {
  for (const auto& [name, named] : names)
    if (named == value) return name;
  return "?";
}

template <class Names>
auto value_in(const Names& names, std::string_view kind, std::string_view text) {
  std::vector<std::string_view> legal;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    legal.push_back(name);
  }
  refuse_name(kind, text, legal);
}

const Tensor& required(const Problem& problem, const std::string& tensor) {
  const auto found = problem.inputs.find(tensor);
  if (found == problem.inputs.end())
    throw InputError(fmt::format("{}: expected input '{}' of {}; found no such tensor", tensor, tensor,
                                 name(problem.operation)));
  return found->second;
}

void require_rank(const Tensor& tensor, const std::string& tensor_name, const std::string& dimensions,
                  int rank) {
  if (tensor.rank() != rank)
    throw InputError(
        fmt::format("{}: expected shape {}; found {}", tensor_name, dimensions, shape_text(tensor.shape)));
}

void require_shape(const Tensor& tensor, const std::string& tensor_name, const std::string& dimensions,
                   const std::vector<Index>& shape) {
  if (tensor.shape != shape)
    throw InputError(fmt::format("{}: expected shape {} = {}; found {}", tensor_name, dimensions,
                                 shape_text(shape), shape_text(tensor.shape)));
}

void require_extents(const Tensor& tensor, const std::string& tensor_name, const std::string& dimensions,
                     std::size_t may_be_empty) {
  for (std::size_t dimension = 0; dimension < tensor.shape.size(); ++dimension)
    if (tensor.shape[dimension] < (dimension == may_be_empty ? 0 : 1))
      throw InputError(
          fmt::format("{}: expected every extent of {}{} to be at least 1; found {}", tensor_name, dimensions,
                      may_be_empty < tensor.shape.size() ? " but T" : "", shape_text(tensor.shape)));
}

void refuse_other_names(const Problem& problem, const std::vector<std::string>& legal) {
  const std::vector<std::string_view> names(legal.begin(), legal.end());
  for (const auto& [present, tensor] : problem.inputs)
    if (std::find(legal.begin(), legal.end(), present) == legal.end())
      refuse_name(fmt::format("input tensor of {}", name(problem.operation)), present, names);
}

void check_recurrence(const Problem& problem) {
  refuse_other_names(problem, {"q", "k", "v", "gate", "beta", "initial_state"});
  const Tensor& q = required(problem, "q");
  const Tensor& v = required(problem, "v");
  require_rank(q, "q", "[B,T,H,K]", 4);
  require_rank(v, "v", "[B,T,H,V]", 4);
  require_extents(q, "q", "[B,T,H,K]", 1);
  require_extents(v, "v", "[B,T,H,V]", 1);
  const Index B = q.shape[0], T = q.shape[1], H = q.shape[2], K = q.shape[3], V = v.shape[3];
  require_shape(required(problem, "k"), "k", "[B,T,H,K]", {B, T, H, K});
  require_shape(v, "v", "[B,T,H,V]", {B, T, H, V});
  require_shape(required(problem, "gate"), "gate", "[B,T,H]", {B, T, H});
  require_shape(required(problem, "beta"), "beta", "[B,T,H]", {B, T, H});
  if (problem.inputs.contains("initial_state"))
    require_shape(problem.input("initial_state"), "initial_state", "[B,H,K,V]", {B, H, K, V});
}

const std::vector<std::string>& pass_tensors() {
  static const std::vector<std::string> tensors{"norm.weight", "norm.bias", "qkv.weight", "out.weight",
                                                "out.bias"};
  return tensors;
}

/// "row" and "qkv.weight": "row_qkv.weight".
std::string full_name(const std::string& pass, const std::string& tensor) {
  return fmt::format("{}_{}", pass, tensor);
}

void check_pass(const Problem& problem, const std::string& pass, bool runs, Index D) {
  for (const std::string& tensor : pass_tensors()) {
    const std::string full = full_name(pass, tensor);
    if (!runs && !problem.inputs.contains(full)) continue;
    if (tensor == "qkv.weight")
      require_shape(required(problem, full), full, "[3D,D]", {3 * D, D});
    else if (tensor == "out.weight")
      require_shape(required(problem, full), full, "[D,D]", {D, D});
    else
      require_shape(required(problem, full), full, "[D]", {D});
  }
}

void check_axial(const Problem& problem) {
  std::vector<std::string> legal{"x"};
  for (const std::string pass : {"row", "col"})
    for (const std::string& tensor : pass_tensors()) legal.push_back(full_name(pass, tensor));
  refuse_other_names(problem, legal);
  const Tensor& x = required(problem, "x");
  require_rank(x, "x", "[B,H,W,D]", 4);
  require_extents(x, "x", "[B,H,W,D]", 4);
  const Index D = x.shape[3];
  const Attributes& attributes = problem.attributes;
  if (D > std::numeric_limits<Index>::max() / 3)
    throw InputError(fmt::format("x: expected an extent D that can be tripled; found {}", D));
  if (attributes.heads < 1 || D % attributes.heads != 0)
    throw InputError(
        fmt::format("heads: expected a divisor of D={} that is at least 1; found {}", D, attributes.heads));
  if (!std::isfinite(attributes.eps) || attributes.eps < 0)
    throw InputError(
        fmt::format("eps: expected a finite number that is not negative; found {}", attributes.eps));
  check_pass(problem, "row", attributes.passes != AxialPasses::col, D);
  check_pass(problem, "col", attributes.passes != AxialPasses::row, D);
}

AxialPassParameters pass_view(const Problem& problem, const std::string& pass) {
  AxialPassParameters parameters;
  const auto set = [&]<int Rank>(TensorView<const float, Rank>& view, const std::string& tensor) {
    const auto found = problem.inputs.find(full_name(pass, tensor));
    if (found != problem.inputs.end()) view = found->second.template view<Rank>();
  };
  set(parameters.norm_weight, "norm.weight");
  set(parameters.norm_bias, "norm.bias");
  set(parameters.qkv_weight, "qkv.weight");
  set(parameters.out_weight, "out.weight");
  set(parameters.out_bias, "out.bias");
  return parameters;
}

}  // namespace

std::string_view name(Operation operation) {
  return name_in(operation_names, operation);
}
Operation parse_operation(std::string_view text) {
  return value_in(operation_names, "operation", text);
}
std::string_view name(AxialPasses passes) {
  return name_in(passes_names, passes);
}
AxialPasses parse_passes(std::string_view text) {
  return value_in(passes_names, "passes", text);
}

void require_score_memory(Index height, Index width, AxialPasses passes) {
  const Index tokens = passes == AxialPasses::row   ? width
                       : passes == AxialPasses::col ? height
                                                    : std::max(height, width);
  // Of one head: scores and weights in the reference's widest arithmetic. Measured: 50 bytes a score.
  constexpr double floats_of_score = 13;
  require_memory(floats_of_score * static_cast<double>(tokens) * static_cast<double>(tokens),
                 fmt::format("scores of a sequence of {} tokens", tokens));
}

void check_problem(const Problem& problem) {
  if (problem.operation == Operation::recurrence)
    check_recurrence(problem);
  else
    check_axial(problem);
}

std::map<std::string, std::vector<Index>> output_shapes(const Problem& problem) {
  if (problem.operation == Operation::recurrence) {
    const std::vector<Index>& q = problem.input("q").shape;
    const std::vector<Index>& v = problem.input("v").shape;
    return {{"y", v}, {"final_state", {q[0], q[2], q[3], v[3]}}};
  }
  const std::vector<Index>& x = problem.input("x").shape;
  std::map<std::string, std::vector<Index>> shapes{{"y", x}};
  if (problem.attributes.passes == AxialPasses::both) shapes["row"] = x;
  return shapes;
}

Outputs make_outputs(const Problem& problem, bool with_row) {
  Outputs outputs;
  for (const auto& [tensor, shape] : output_shapes(problem))
    if (tensor != "row" || with_row) outputs[tensor] = Tensor::contiguous(shape);
  return outputs;
}

RecurrenceProblem recurrence_view(const Problem& problem) {
  RecurrenceProblem view;
  view.q = problem.input("q").view<4>();
  view.k = problem.input("k").view<4>();
  view.v = problem.input("v").view<4>();
  view.gate = problem.input("gate").view<3>();
  view.beta = problem.input("beta").view<3>();
  if (problem.inputs.contains("initial_state")) view.initial_state = problem.input("initial_state").view<4>();
  return view;
}

RecurrenceOutputs<float> recurrence_view(Outputs& outputs) {
  return {outputs.at("y").mutable_view<4>(), outputs.at("final_state").mutable_view<4>()};
}

AxialProblem axial_view(const Problem& problem) {
  AxialProblem view;
  view.x = problem.input("x").view<4>();
  view.row = pass_view(problem, "row");
  view.col = pass_view(problem, "col");
  view.heads = problem.attributes.heads;
  view.eps = problem.attributes.eps;
  view.passes = problem.attributes.passes;
  return view;
}

AxialOutputs<float> axial_view(Outputs& outputs) {
  AxialOutputs<float> view{outputs.at("y").mutable_view<4>(), std::nullopt};
  if (outputs.contains("row")) view.row = outputs.at("row").mutable_view<4>();
  return view;
}

std::string sizes_text(const Problem& problem) {
  if (problem.operation == Operation::recurrence) {
    const std::vector<Index>& q = problem.input("q").shape;
    return fmt::format("B={},T={},H={},K={},V={}", q[0], q[1], q[2], q[3], problem.input("v").shape[3]);
  }
  const std::vector<Index>& x = problem.input("x").shape;
  return fmt::format("B={},H={},W={},D={},heads={}", x[0], x[1], x[2], x[3], problem.attributes.heads);
}

}  // namespace gaugeblock
