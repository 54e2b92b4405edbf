#include "gaugeblock/verify/relations/relation.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gaugeblock/verify/relations/axial_relations.h"
#include "gaugeblock/verify/relations/recurrence_relations.h"

namespace gaugeblock {

const std::vector<Relation>& relations_of(Operation operation) {
  static const std::vector<Relation> recurrence = recurrence_relations();
  static const std::vector<Relation> axial = axial_relations();
  return operation == Operation::recurrence ? recurrence : axial;
}

Tensor mapped(const Tensor& tensor, const std::function<float(const std::vector<Index>&, float)>& value) {
  Tensor result = Tensor::contiguous(tensor.shape);
  std::vector<float> values = tensor.values();
  for (std::size_t e = 0; e < values.size(); ++e)
    values[e] = value(subscripts(tensor.shape, static_cast<Index>(e)), values[e]);
  result.assign(values);
  return result;
}

Tensor sliced(const Tensor& tensor, int dimension, Index first, Index last) {
  std::vector<Index> shape = tensor.shape;
  shape[dimension] = last - first;
  Tensor result = Tensor::contiguous(shape);
  for (Index e = 0; e < result.size(); ++e) {
    Index from = tensor.offset;
    const std::vector<Index> at = subscripts(shape, e);
    for (int d = 0; d < tensor.rank(); ++d) from += (at[d] + (d == dimension ? first : 0)) * tensor.stride[d];
    result.buffer[result.position(e)] = tensor.buffer[from];
  }
  return result;
}

Tensor backwards(const Tensor& tensor, int dimension) {
  Tensor result = Tensor::contiguous(tensor.shape);
  for (Index e = 0; e < result.size(); ++e) {
    Index from = tensor.offset;
    const std::vector<Index> at = subscripts(tensor.shape, e);
    for (int d = 0; d < tensor.rank(); ++d)
      from += (d == dimension ? tensor.shape[d] - 1 - at[d] : at[d]) * tensor.stride[d];
    result.buffer[result.position(e)] = tensor.buffer[from];
  }
  return result;
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
