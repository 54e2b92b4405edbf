#include "gaugeblock/verify/relations/relation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "gaugeblock/verify/cases/random.h"
#include "gaugeblock/verify/relations/axial_relations.h"
#include "gaugeblock/verify/relations/recurrence_relations.h"

namespace gaugeblock {

const std::vector<Relation>& relations_of(Operation operation) {
  static const std::vector<Relation> recurrence = recurrence_relations();
  static const std::vector<Relation> axial = axial_relations();
  return operation == Operation::recurrence ? recurrence : axial;
}

namespace {

/// A contiguous tensor whose element `at` is that of `tensor` at source(at), a position along `dimension`.
template <class Source>
Tensor gathered(const Tensor& tensor, const std::vector<Index>& shape, int dimension, Source source) {
  std::vector<float> values;
  for_each_subscript(shape, [&](const std::vector<Index>& at) {
    Index from = tensor.offset;
    for (int d = 0; d < tensor.rank(); ++d)
      from += (d == dimension ? source(at[d]) : at[d]) * tensor.stride[d];
    values.push_back(tensor.buffer[from]);
  });
  Tensor result = Tensor::contiguous(shape);
  result.assign(values);
  return result;
}

}  // namespace

Oracle& DerivedOracles::of(const Problem& problem) {
  std::unique_ptr<Entry>& entry = entries_[problem.case_text];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>(Entry{problem, nullptr});
    entry->oracle = make_oracle(entry->problem);
  }
  const auto bits = [](const Tensor& tensor) {
    std::vector<std::uint32_t> all;
    for (const float value : tensor.values()) all.push_back(std::bit_cast<std::uint32_t>(value));
    return all;
  };
  const auto same = [&bits](const auto& one, const auto& other) {
    return one.first == other.first && one.second.shape == other.second.shape &&
           bits(one.second) == bits(other.second);
  };
  const auto& known = entry->problem.inputs;
  if (!std::equal(known.begin(), known.end(), problem.inputs.begin(), problem.inputs.end(), same))
    throw std::logic_error("two problems are called '" + problem.case_text + "'");
  return *entry->oracle;
}

Index place(std::uint64_t seed, std::uint64_t salt, Index count) {
  return static_cast<Index>(scramble(seed + salt * 0x9e3779b97f4a7c15U) % static_cast<std::uint64_t>(count));
}

Tensor mapped(const Tensor& tensor, const std::function<float(const std::vector<Index>&, float)>& value) {
  Tensor result = Tensor::contiguous(tensor.shape);
  std::vector<float> values = tensor.values();
  std::size_t element = 0;
  for_each_subscript(tensor.shape, [&](const std::vector<Index>& at) {
    values[element] = value(at, values[element]);
    ++element;
  });
  result.assign(values);
  return result;
}

Tensor sliced(const Tensor& tensor, int dimension, Index first, Index last) {
  std::vector<Index> shape = tensor.shape;
  shape[dimension] = last - first;
  return gathered(tensor, shape, dimension, [first](Index position) { return first + position; });
}

Tensor backwards(const Tensor& tensor, int dimension) {
  const Index end = tensor.shape[dimension] - 1;
  return gathered(tensor, tensor.shape, dimension, [end](Index position) { return end - position; });
}

Outputs run_on(const Variant& variant, const Problem& problem) {
  Outputs outputs = make_outputs(problem);
  variant.run(problem, outputs);
  return outputs;
}

std::string first_unequal(const std::string& name, const Tensor& actual, const Tensor& wanted) {
  const std::vector<float> a = actual.values();
  const std::vector<float> w = wanted.values();
  for (std::size_t e = 0; e < a.size(); ++e) {
    if (a[e] == w[e] || (std::isnan(a[e]) && std::isnan(w[e]))) continue;
    return fmt::format("{}[{}] is {:.9g}, expected {:.9g}", name,
                       fmt::join(subscripts(actual.shape, static_cast<Index>(e)), ","), a[e], w[e]);
  }
  return {};
}

}  // namespace gaugeblock
