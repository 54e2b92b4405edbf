#include "gaugeblock/gpu/choice.h"

#include <algorithm>

namespace gaugeblock::gpu {
namespace {

// Measured at T = 128 only (an H200): the work of tile_masked_attention grows with T², where the lines cross
// has not been swept.
constexpr Index short_steps = 256;

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
      {"tile_masked_attention", "short sequences, T <= 256",
       [](const RecurrenceArguments& arguments) { return arguments.steps() <= short_steps; }},
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
