#include "gaugeblock/gpu/choice.h"

#include <algorithm>

namespace gaugeblock::gpu {
namespace {

// The rules of the recurrence rest on a sweep on an H200, T = 1 … 256, B·H = 8, 64, 512, K = V = 24, 64, 128
// (tests/bench/compare_with_peers.py --work choice).
constexpr Index swept_steps = 256;

constexpr Index multiprocessors = 132;  // of an H100 or H200

Index widest(const RecurrenceArguments& arguments) {
  return std::max(arguments.key_size(), arguments.value_size());
}

Index parts(Index whole, Index part) {
  return std::max<Index>((whole + part - 1) / part, 1);
}

/// B·H · `each` <= `most`, whatever their sizes.
bool all_heads_fit(const RecurrenceArguments& arguments, Index each, Index most) {
  const Index heads = most / each;
  return arguments.batches() <= heads && arguments.heads() <= heads &&
         arguments.batches() * arguments.heads() <= heads;
}

/// Whether the GPU holds all tiles of 8 outputs at once, `resident` on a multiprocessor: of
/// register_masked_attention two, by its registers; of tile_masked_attention five with K and V up to 24, two with
/// up to 64, by its shared memory. A tile looks back over 128 steps a round.
bool tiles_fit(const RecurrenceArguments& arguments, Index resident) {
  if (arguments.steps() > swept_steps) return false;
  const Index tiles = parts(arguments.steps(), 8) + parts(arguments.key_size(), 8);
  return all_heads_fit(arguments, tiles * parts(arguments.steps(), 128), multiprocessors * resident);
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
      {"register_masked_attention", "K and V up to 24, B·H·(⌈T/8⌉ + ⌈K/8⌉) at most 264",
       [](const RecurrenceArguments& arguments) {
         return widest(arguments) <= 24 && tiles_fit(arguments, 2);
       }},
      {"warps_per_column", "one or two steps, at most 4096 columns of states",
       [](const RecurrenceArguments& arguments) {
         return arguments.steps() <= 2 && all_heads_fit(arguments, arguments.value_size(), 4096);
       }},
      {"tile_masked_attention",
       "B·H·(⌈T/8⌉ + ⌈K/8⌉)·⌈T/128⌉ at most 660 with K and V up to 24, 264 with up to 64",
       [](const RecurrenceArguments& arguments) {
         return widest(arguments) <= 64 && tiles_fit(arguments, widest(arguments) <= 24 ? 5 : 2);
       }},
      {"chunked_split_half", "one or two steps, B·H·⌈V/64⌉ at most 132",
       [](const RecurrenceArguments& arguments) {
         return arguments.steps() <= 2 &&
                all_heads_fit(arguments, parts(arguments.value_size(), 64), multiprocessors);
       }},
      {"thread_per_column", "one or two steps, or up to four with K and V up to 24",
       [](const RecurrenceArguments& arguments) {
         return arguments.steps() <= (widest(arguments) <= 24 ? 4 : 2);
       }},
      {"tile_masked_attention", "T <= 32 with K and V up to 24",
       [](const RecurrenceArguments& arguments) {
         return arguments.steps() <= 32 && widest(arguments) <= 24;
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
