// Relations: what must be true between runs of one variant, beside each run's bound.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Oracles of the problems that relations make of one problem. Most are the same for every variant, and an oracle
/// costs more than many runs: each is made once.
class DerivedOracles {
 public:
  /// Of this problem: the one made before where text, attributes and inputs are the same.
  Oracle& of(const Problem& problem);

 private:
  struct Entry {
    Problem problem;
    std::unique_ptr<Oracle> oracle;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// What a relation looks at. `oracle` answers about `problem`; `outputs` are the variant's outputs for it.
struct RelationInput {
  const Variant& variant;
  const Problem& problem;
  Oracle& oracle;
  DerivedOracles& derived;  ///< of problems made of `problem`
  const Outputs& outputs;
  std::uint64_t seed;  ///< for choices of a place: derived from the case, so that a case repeats exactly
};

struct RelationResult {
  enum class Kind { holds, broken, not_applicable } kind = Kind::holds;
  std::string message;  ///< broken: where and what; not applicable: why

  static RelationResult holds() { return {}; }
  static RelationResult broken(std::string message) { return {Kind::broken, std::move(message)}; }
  static RelationResult not_applicable(std::string why) { return {Kind::not_applicable, std::move(why)}; }
};

struct Relation {
  Operation operation;
  std::string name;
  std::string identity;  ///< the algebra that makes it a check
  std::function<RelationResult(const RelationInput&)> check;
};

/// Every relation of an operation.
const std::vector<Relation>& relations_of(Operation operation);

// ---- tools for relations ----

/// A place in [0, count) chosen by the seed; `salt` tells several choices apart.
Index place(std::uint64_t seed, std::uint64_t salt, Index count);

/// A contiguous copy of `tensor` with `value(subscripts, old value)` in each place.
Tensor mapped(const Tensor& tensor, const std::function<float(const std::vector<Index>&, float)>& value);

/// A contiguous copy of positions [first, last) along `dimension`.
Tensor sliced(const Tensor& tensor, int dimension, Index first, Index last);

/// A contiguous copy with `dimension` backwards.
Tensor backwards(const Tensor& tensor, int dimension);

/// Runs the variant on another problem. Precondition: !variant.declines(problem).
Outputs run_on(const Variant& variant, const Problem& problem);

/// The first element where `actual` differs from `wanted` in value (both zeros are equal, NaN equals NaN), in
/// words; empty when they agree.
std::string first_unequal(const std::string& name, const Tensor& actual, const Tensor& wanted);

}  // namespace gaugeblock
