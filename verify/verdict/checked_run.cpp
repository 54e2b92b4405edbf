#include "gaugeblock/verify/verdict/checked_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <exception>

#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

std::string place(const std::string& tensor, const std::vector<Index>& shape, Index element) {
  return fmt::format("{}[{}]", tensor, fmt::join(subscripts(shape, element), ","));
}

/// The first element nothing wrote, in words, or nothing.
std::string first_unwritten(const Outputs& outputs) {
  for (const auto& [name, tensor] : outputs) {
    const std::vector<float> values = tensor.values();
    for (std::size_t e = 0; e < values.size(); ++e)
      if (std::bit_cast<std::uint32_t>(values[e]) == poison_bits)
        return fmt::format("{} was never written", place(name, tensor.shape, static_cast<Index>(e)));
  }
  return {};
}

std::string first_change(const Problem& now, const Problem& before) {
  for (const auto& [name, tensor] : before.inputs) {
    const Tensor& other = now.inputs.at(name);
    for (std::size_t e = 0; e < tensor.buffer.size(); ++e)
      if (!same_bits(tensor.buffer[e], other.buffer[e]))
        return fmt::format("the input buffer of {} was changed at element {} (the view starts at {})", name,
                           e, tensor.offset);
  }
  return {};
}

std::string damaged_guard(const Outputs& outputs) {
  for (const auto& [name, tensor] : outputs)
    if (const Index damaged = tensor.damaged_guards(); damaged > 0)
      return fmt::format("{} element(s) outside the view of output {} were written", damaged, name);
  return {};
}

}  // namespace

std::string first_difference(const Outputs& a, const Outputs& b) {
  for (const auto& [name, tensor] : a) {
    const std::vector<float> x = tensor.values();
    const std::vector<float> y = b.at(name).values();
    for (std::size_t e = 0; e < x.size(); ++e)
      if (!same_bits(x[e], y[e]))
        return fmt::format("{}: {:.9g} and {:.9g}", place(name, tensor.shape, static_cast<Index>(e)), x[e],
                           y[e]);
  }
  return {};
}

CheckedRun run_checked(const Variant& variant, const Problem& problem, bool repeat) {
  CheckedRun result;
  Problem copy = problem;  // the variant gets the copy: whatever it overwrites, the original stays
  try {
    result.outputs = make_outputs(problem);
    variant.run(copy, result.outputs);
    result.broken = first_unwritten(result.outputs);
    if (result.broken.empty()) result.broken = damaged_guard(result.outputs);
    if (result.broken.empty()) result.broken = first_change(copy, problem);
    if (!repeat || !result.broken.empty()) return result;
    const auto repetitions =
        variant.run_again.empty() ? std::vector{RunAgain{variant.run}} : variant.run_again;
    for (const auto& [run, what] : repetitions) {
      Outputs again = make_outputs(problem);
      run(copy, again);
      const std::string difference = first_difference(result.outputs, again);
      if (difference.empty()) continue;
      result.broken = fmt::format("{} gave other bits at {}", what, difference);
      break;
    }
  } catch (const RunPropertyBroken& property) {
    result.broken = property.what();
  } catch (const NothingToJudge& reason) {
    result.declined = reason.what();
  } catch (const std::exception& failure) {
    result.error = failure.what();
  }
  return result;
}

}  // namespace gaugeblock
