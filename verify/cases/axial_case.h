// Cases of the axial attention block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gaugeblock/reference/axial/problem.h"
#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/cases/random.h"
#include "gaugeblock/verify/cases/recurrence_case.h"

namespace gaugeblock {

/// Where entries of x come from, plainest first. U is uniform on [0,1).
enum class InputFamily {
  normal,    ///< bell-shaped, mean 0, variance 1
  index,     ///< channel 0 holds 10·h + w, the others are normal: tells which token went where
  uniform,   ///< U
  small,     ///< 2^-10·normal, about 1e-3: eps matters
  large,     ///< 2^13·normal, about 1e+4
  offset,    ///< a mean of 512 … 1023, another one for each token, and a spread of about 1e-2
  constant,  ///< tokens that have the same value in every channel, about 1e+3: no variance at all
  value,     ///< X in every element
};

struct AxialInput {
  InputFamily family = InputFamily::normal;
  float value = 0;  ///< X of `value`
  bool operator==(const AxialInput&) const = default;
};

/// Where the parameters come from, plainest first. Unless said otherwise matrices are normal with variance
/// 1/D, biases are normal with deviation 1/8 and norm.weight is 1 plus such a number.
enum class WeightsFamily {
  normal,
  zero_out,    ///< W_out = 0 and b_out = 0: y = x
  zero_qkv,    ///< W_qkv = 0: y = x + b_out
  heads,       ///< V of head h is h + 1 times as large
  dominant,    ///< W_q = 8·W_k: each token attends to itself above all
  logits_200,  ///< W_q and W_k times 8: logits up to about ±200
  logits_1e5,  ///< norm.bias = 1, W_q and W_k nearly constant of opposite sign: every logit about -1e5
};

std::string_view name(InputFamily family);
std::string_view name(WeightsFamily family);

/// "normal", "const:1234": what stands in a case text.
std::string input_text(const AxialInput& input);
AxialInput parse_input(std::string_view text);

/// axial:B=4,H=32,W=32,D=64,heads=4,eps=1e-05,passes=both,x=normal,weights=normal,layout=contiguous,seed=1
struct AxialCase {
  Index B = 1, H = 2, W = 3, D = 4, heads = 1;
  float eps = 1e-5F;
  AxialPasses passes = AxialPasses::both;
  AxialInput x;
  WeightsFamily weights = WeightsFamily::normal;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 1;
  bool operator==(const AxialCase&) const = default;
};

/// Throws InputError (one line) for an unknown key or family, a bad number or illegal sizes.
AxialCase axial_case_from(const CaseText& text);

/// Every key, in the order of the struct.
CaseText case_text(const AxialCase& c);

/// The tensors: x and the parameters of the passes that run. An entry depends on the seed, the tensor, its
/// own subscripts and its family, and on D where a variance of 1/D is asked for. Throws InputError when they
/// do not fit.
Problem make_problem(const AxialCase& c);

/// Cases one step simpler: one smaller extent, fewer heads, one pass, one plainer family or seed 1.
std::vector<AxialCase> simpler(const AxialCase& c);

std::vector<std::pair<std::string, std::string>> families(const AxialCase& c);

/// Multiply-adds of the definition: 4 D² + 2 L D a token and pass.
double work(const AxialCase& c);

/// A case of any family and layout with work(c) <= largest_work; at least one token of one channel.
AxialCase draw_axial_case(Draw& draw, double largest_work);

/// Small cases of every kind and inputs of faults seen in other kernels, to open a campaign with.
const std::vector<AxialCase>& opening_axial_cases();

}  // namespace gaugeblock
