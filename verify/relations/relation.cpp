#include "gaugeblock/verify/relations/relation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

bool is_same(const Problem& one, const Problem& other) {
  const auto same_input = [](const auto& a, const auto& b) {
    const std::vector<float> values = a.second.values();
    const std::vector<float> others = b.second.values();
    return a.first == b.first && a.second.shape == b.second.shape &&
           std::equal(values.begin(), values.end(), others.begin(), others.end(), same_bits);
  };
  const Attributes& a = one.attributes;
  const Attributes& b = other.attributes;
  return one.operation == other.operation && one.case_text == other.case_text && a.heads == b.heads &&
         same_bits(a.eps, b.eps) && a.passes == b.passes &&
         std::equal(one.inputs.begin(), one.inputs.end(), other.inputs.begin(), other.inputs.end(),
                    same_input);
}

}  // namespace

Oracle& DerivedOracles::of(const Problem& problem) {
  for (const std::unique_ptr<Entry>& entry : entries_)
    if (is_same(entry->problem, problem)) return *entry->oracle;
  entries_.push_back(std::make_unique<Entry>(Entry{problem, nullptr}));
  Entry& entry = *entries_.back();
  entry.oracle = make_oracle(entry.problem);
  return *entry.oracle;
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
