// Wrong runs: the numbers are those of the definition, but something around them is not: cheats, memory that
// is not written or not the run's own, inputs that are changed, bits that change.
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gaugeblock/reference/axial/unfused.h"
#include "gaugeblock/reference/recurrence/sequential.h"
#include "mutant.h"

namespace gaugeblock {
namespace {

void define(const Problem& problem, Outputs& outputs) {
  if (problem.operation == Operation::recurrence)
    recurrence::sequential(recurrence_view(problem), recurrence_view(outputs));
  else
    axial::unfused(axial_view(problem), axial_view(outputs));
}

void fill(Outputs& outputs, float value) {
  for (auto& [name, tensor] : outputs)
    tensor.assign(std::vector<float>(static_cast<std::size_t>(tensor.size()), value));
}

/// The input, to be changed: the fault itself.
Tensor& writable(const Problem& problem, const std::string& name) {
  return const_cast<Tensor&>(problem.input(name));
}

float& last_of(Tensor& tensor) {
  return tensor.buffer[tensor.position(tensor.size() - 1)];
}

bool is_contiguous(const Problem& problem) {
  for (const auto& [name, tensor] : problem.inputs)
    if (tensor.size() > 0 &&
        (tensor.stride != contiguous_strides(tensor.shape, name) || tensor.offset != Tensor::guard_elems))
      return false;
  return true;
}

/// Outputs of earlier runs, by sizes. Campaigns run on several threads.
struct Cache {
  std::mutex mutex;
  std::map<std::string, Outputs> of_sizes;
};

using Run = std::function<void(const Problem&, Outputs&)>;

Run cached() {
  return [cache = std::make_shared<Cache>()](const Problem& problem, Outputs& outputs) {
    const std::lock_guard lock(cache->mutex);
    const std::string sizes = sizes_text(problem) + std::string(name(problem.attributes.passes)) +
                              (outputs.contains("row") ? "row" : "");
    const auto found = cache->of_sizes.find(sizes);
    if (found != cache->of_sizes.end()) {
      for (auto& [output, tensor] : outputs) tensor.assign(found->second.at(output).values());
      return;
    }
    define(problem, outputs);
    cache->of_sizes.emplace(sizes, outputs);
  };
}

/// Right where `expected` holds, else zeros.
Run right_only_where(std::function<bool(const Problem&)> expected) {
  return [expected = std::move(expected)](const Problem& problem, Outputs& outputs) {
    if (expected(problem))
      define(problem, outputs);
    else
      fill(outputs, 0);
  };
}

/// Every other run ends one rounding away in each element of the first row of y.
Run changing() {
  return [runs = std::make_shared<std::atomic<int>>(0)](const Problem& problem, Outputs& outputs) {
    define(problem, outputs);
    if ((*runs)++ % 2 == 0) return;
    Tensor& y = outputs.at("y");
    const Index row = y.size() > 0 ? y.shape.back() : 0;
    for (Index e = 0; e < row; ++e) {
      float& value = y.buffer[y.position(e)];
      value = std::nextafter(value, std::numeric_limits<float>::max());
    }
  };
}

}  // namespace

std::vector<Mutant> run_mutants() {
  constexpr bool hides = true;
  std::vector<Mutant> mutants;
  const auto add = [&mutants](Operation operation, std::string id, Kind kind, std::string fault,
                              std::string seen, std::string needs, bool hidden, Run run) {
    mutants.push_back(form_mutant(operation, operation == Operation::axial ? "unfused" : "sequential",
                                  std::move(id), kind, std::move(fault), std::move(seen), std::move(needs),
                                  hidden, std::move(run)));
  };
  constexpr Operation recurrence = Operation::recurrence, axial = Operation::axial;

  // Cheats.
  add(recurrence, "zeros", Kind::cheat, "y and the final state are 0", "ScalingIntelligence/KernelBench#165",
      "T >= 1", !hides, [](const Problem&, Outputs& outputs) { fill(outputs, 0); });
  add(recurrence, "input_returned", Kind::cheat, "y is v", "operator", "T >= 1", !hides,
      [](const Problem& problem, Outputs& outputs) {
        define(problem, outputs);
        outputs.at("y").assign(problem.input("v").values());
      });
  add(recurrence, "cached_output", Kind::cheat, "inputs of the same sizes give the outputs they gave before",
      "operator", "two problems of the same sizes", !hides, cached());
  add(axial, "cached_output_in_axial", Kind::cheat,
      "inputs of the same sizes give the outputs they gave before", "operator",
      "two problems of the same sizes", !hides, cached());
  add(recurrence, "right_at_the_quoted_size", Kind::cheat, "zeros, except at B=2, T=128, H=4, K=V=24",
      "operator", "any other size", hides, right_only_where([](const Problem& problem) {
        return problem.input("k").shape == std::vector<Index>{2, 128, 4, 24} &&
               problem.input("v").shape == std::vector<Index>{2, 128, 4, 24};
      }));
  add(axial, "right_at_the_quoted_size_in_axial", Kind::cheat, "zeros, except at B=4, H=W=32, D=64, heads=4",
      "operator", "any other size", hides, right_only_where([](const Problem& problem) {
        return problem.input("x").shape == std::vector<Index>{4, 32, 32, 64} && problem.attributes.heads == 4;
      }));
  add(recurrence, "right_where_contiguous", Kind::cheat, "zeros, unless every input is contiguous",
      "operator", "a strided input", hides, right_only_where(is_contiguous));

  // Memory that nothing wrote.
  add(recurrence, "element_not_written", Kind::unwritten, "the last element of y is never written",
      "operator", "T >= 1", !hides, [](const Problem& problem, Outputs& outputs) {
        Tensor& y = outputs.at("y");
        if (y.size() == 0) return define(problem, outputs);
        const float before = last_of(y);
        define(problem, outputs);
        last_of(y) = before;
      });
  add(recurrence, "state_not_written_when_empty", Kind::unwritten,
      "an empty sequence returns before the final state is written", "fla-org/flash-linear-attention#88",
      "T = 0", hides, [](const Problem& problem, Outputs& outputs) {
        if (problem.input("v").shape[1] > 0) define(problem, outputs);
      });
  add(axial, "last_of_many_rows_not_written", Kind::unwritten,
      "only the first 128 sequences of the last pass are written", "NVIDIA/apex#411",
      "more than 128 rows or columns in all", hides, [](const Problem& problem, Outputs& outputs) {
        Tensor& y = outputs.at("y");
        const std::vector<float> before = y.values();
        define(problem, outputs);
        const bool by_row = problem.attributes.passes == AxialPasses::row;
        for (Index e = 0; e < y.size(); ++e) {
          const std::vector<Index> at = subscripts(y.shape, e);
          const Index sequence = by_row ? at[0] * y.shape[1] + at[1] : at[0] * y.shape[2] + at[2];
          if (sequence >= 128) y.buffer[y.position(e)] = before[e];
        }
      });
  add(axial, "single_token_not_written", Kind::unwritten, "a problem of one token returns at once",
      "operator", "H = W = 1", hides, [](const Problem& problem, Outputs& outputs) {
        if (problem.input("x").shape[1] * problem.input("x").shape[2] > 1) define(problem, outputs);
      });
  add(recurrence, "writes_behind_output", Kind::indexing, "one element is written behind y", "operator",
      "T >= 0", hides, [](const Problem& problem, Outputs& outputs) {
        define(problem, outputs);
        Tensor& y = outputs.at("y");
        y.buffer[y.offset + y.size()] = 0;
      });

  // Inputs that do not stay what they are.
  add(recurrence, "input_overwritten", Kind::aliasing, "k is used as scratch memory once it has been read",
      "operator", "T >= 1", hides, [](const Problem& problem, Outputs& outputs) {
        define(problem, outputs);
        Tensor& k = writable(problem, "k");
        if (k.size() > 0) last_of(k) += 1;
      });
  add(axial, "weights_folded_in_place", Kind::aliasing,
      "norm.weight is multiplied into W_qkv where it lies, and set to 1", "operator",
      "a norm.weight other than 1", hides, [](const Problem& problem, Outputs& outputs) {
        define(problem, outputs);
        for (const std::string pass : {"row", "col"}) {
          if (!problem.inputs.contains(pass + "_norm.weight")) continue;
          Tensor& norm = writable(problem, pass + "_norm.weight");
          Tensor& qkv = writable(problem, pass + "_qkv.weight");
          const Index D = norm.shape[0];
          for (Index e = 0; e < qkv.size(); ++e)
            qkv.buffer[qkv.position(e)] *= norm.buffer[norm.position(e % D)];
          norm.assign(std::vector<float>(static_cast<std::size_t>(D), 1.0F));
        }
      });
  add(axial, "written_over_its_input", Kind::aliasing, "the result is written over x as well",
      "ggml-org/ggml#1521", "a projection other than 0", hides, [](const Problem& problem, Outputs& outputs) {
        define(problem, outputs);
        Tensor& x = writable(problem, "x");
        const std::vector<float> y = outputs.at("y").values();
        for (Index e = 0; e < x.size(); ++e) x.buffer[x.position(e)] = y[e];
      });

  // Bits that change.
  add(recurrence, "changes_from_run_to_run", Kind::nondeterministic,
      "every other run adds the products in another order", "fla-org/flash-linear-attention#945", "T >= 1",
      hides, changing());
  add(axial, "changes_from_run_to_run_in_axial", Kind::nondeterministic,
      "every other run adds the products in another order", "operator", "any", hides, changing());

  // Offsets in too few bits: what 32 bits do from 2^31 on, these do from 2^13 on.
  add(axial, "x_offset_in_13_bits", Kind::narrow_offset, "offsets of x lose their bits from 2^13 on",
      "fla-org/flash-linear-attention#1080", "x of more than 2^13 elements", !hides,
      [](const Problem& problem, Outputs& outputs) {
        Problem seen = problem;
        Tensor& x = seen.inputs.at("x");
        Tensor narrow = Tensor::contiguous(x.shape);
        const std::vector<float> values = x.values();
        for (Index e = 0; e < x.size(); ++e) narrow.buffer[narrow.position(e)] = values[e & 0x1fff];
        seen.inputs.insert_or_assign("x", narrow);
        define(seen, outputs);
      });
  return mutants;
}

}  // namespace gaugeblock
