// Which kernel is the fastest that takes a problem: a list of rules for each operation, tried in order. Only
// in builds with CUDA (GAUGEBLOCK_HAS_CUDA). Looks at sizes, strides and the GPU's architecture, never at
// values, and touches no device.
#pragma once

#include <string>
#include <vector>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/recurrence/kernels.h"

namespace gaugeblock::gpu {

/// A rule: the kernel it names is taken where the condition holds and the kernel does not decline.
/// The order is by growing size: a larger problem never goes back to an earlier rule.
template <class Kernel, class Arguments>
struct Rule {
  std::string kernel;
  std::string condition;  ///< in words
  bool (*holds)(const Arguments& arguments);
};
using RecurrenceRule = Rule<RecurrenceKernel, RecurrenceArguments>;
using AxialRule = Rule<AxialKernel, AxialArguments>;

const std::vector<RecurrenceRule>& recurrence_rules();
const std::vector<AxialRule>& axial_rules();

template <class Kernel>
struct Choice {
  const Kernel* kernel = nullptr;  ///< null: no kernel takes the problem
  std::size_t rule = 0;            ///< position of the rule that decided
  std::string reason;              ///< what decided, and why the rules before did not
};

/// `architecture`: of the GPU, as in DeviceFacts; empty when it is not known, which rules no kernel out.
Choice<RecurrenceKernel> choose_kernel(const RecurrenceArguments& arguments, const std::string& architecture);
Choice<AxialKernel> choose_kernel(const AxialArguments& arguments, const std::string& architecture);

}  // namespace gaugeblock::gpu
