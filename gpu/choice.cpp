#include "gaugeblock/gpu/choice.h"

#include <algorithm>

namespace gaugeblock::gpu {
namespace {

// The rules of the recurrence rest on a sweep on an H200, T = 1 … 256, B·H = 8, 64, 512, K = V = 24, 64, 128
// (tests/bench/compare_with_peers.py --work choice).
constexpr Index swept_steps = 256;

/// Blocks of tile_masked_attention that an H100 or H200 holds at once: five, two or one on each of its 132
/// multiprocessors, by the shared memory that rows of K and V take.
Index tiles_at_once(const RecurrenceArguments& arguments) {
  const Index widest = std::max(arguments.key_size(), arguments.value_size());
  return 132 * (widest <= 24 ? 5 : widest <= 64 ? 2 : 1);
}

/// A tile looks back over 128 steps a round.
bool has_few_tiles(const RecurrenceArguments& arguments) {
  if (arguments.steps() > swept_steps) return false;
  const auto parts = [](Index whole, Index part) { return std::max<Index>((whole + part - 1) / part, 1); };
  const Index tiles_of_head = parts(arguments.steps(), 8) + parts(arguments.key_size(), 8);
  const Index most_heads = 3 * tiles_at_once(arguments) / (2 * tiles_of_head * parts(arguments.steps(), 128));
  return arguments.batches() <= most_heads && arguments.heads() <= most_heads &&
         arguments.batches() * arguments.heads() <= most_heads;
}

Index longest_sequence(const AxialArguments& arguments) {
  if (arguments.passes == AxialPasses::row) return arguments.width();
  if (arguments.passes == AxialPasses::col) return arguments.height();
  return std::max(arguments.width(), arguments.height());
}

template <class Kernel, class Arguments>
Choice<Kernel> choose(const std::vector<Rule<Kernel, Arguments>>& rules, const std::vector<Kernel>& kernels,
                      const Arguments& arguments, const std::string& architecture) {
  Choice<Kernel> choice;
  std::string passed_over;
  const auto pass_over = [&passed_over](const std::string& kernel, const std::string& why) {
    passed_over += (passed_over.empty() ? "; not " : ", not ") + kernel + " (" + why + ")";
  };
  for (; choice.rule < rules.size(); ++choice.rule) {
    const auto& rule = rules[choice.rule];
    const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                     [&rule](const Kernel& one) { return one.name == rule.kernel; });
    if (kernel == kernels.end()) {
      pass_over(rule.kernel, "not in this build");
    } else if (const auto elsewhere = declines_architecture(kernel->architecture, architecture)) {
      pass_over(rule.kernel, *elsewhere);
    } else if (!rule.holds(arguments)) {
      pass_over(rule.kernel, "only for " + rule.condition);
    } else if (const auto reason = kernel->declines(arguments)) {
      pass_over(rule.kernel, *reason);
    } else {
      choice.kernel = &*kernel;
      choice.reason = rule.condition + passed_over;
      return choice;
    }
  }
  choice.reason = "no kernel takes the problem" + passed_over;
  return choice;
}

}  // namespace

const std::vector<RecurrenceRule>& recurrence_rules() {
  const auto any = [](const RecurrenceArguments&) { return true; };
  static const std::vector<RecurrenceRule> rules{
      {"tile_masked_attention",
       "few tiles: B·H·(⌈T/8⌉ + ⌈K/8⌉)·⌈T/128⌉ at most 1.5 times what a GPU holds at once", has_few_tiles},
      {"thread_per_column", "one or two steps",
       [](const RecurrenceArguments& arguments) { return arguments.steps() <= 2; }},
      {"tile_masked_attention", "T <= 32 with K and V up to 24",
       [](const RecurrenceArguments& arguments) {
         return arguments.steps() <= 32 && arguments.key_size() <= 24 && arguments.value_size() <= 24;
       }},
      {"chunked_split_half", "any T, K and V up to 128, on tensor cores", any},
      {"chunked", "any T and V, K that shared memory holds", any},
      {"thread_per_column", "any sizes", any},
  };
  return rules;
}

const std::vector<AxialRule>& axial_rules() {
  const auto any = [](const AxialArguments&) { return true; };
  static const std::vector<AxialRule> rules{
      {"fused_pass_split_half", "sequences of at most 64 tokens of at most 64 channels",
       [](const AxialArguments& arguments) {
         return longest_sequence(arguments) <= 64 && arguments.channels() <= 64;
       }},
      {"warpgroup_pass_split_half", "sequences that a warpgroup's tiles hold", any},
      {"fused_pass_split_half", "any tokens, up to 256 channels", any},
      {"tiled", "any sizes", any},
  };
  return rules;
}

Choice<RecurrenceKernel> choose_kernel(const RecurrenceArguments& arguments,
                                       const std::string& architecture) {
  return choose(recurrence_rules(), cuda_backend::recurrence_kernels(), arguments, architecture);
}

Choice<AxialKernel> choose_kernel(const AxialArguments& arguments, const std::string& architecture) {
  return choose(axial_rules(), cuda_backend::axial_kernels(), arguments, architecture);
}

}  // namespace gaugeblock::gpu
