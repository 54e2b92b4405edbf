// Cases of the scalar-gated linear recurrence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gaugeblock/reference/tensor_view.h"
#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {

/// Where gates come from, plainest first. U is uniform on [0,1).
enum class GateFamily {
  one,          ///< 1: a cumulative sum
  uniform,      ///< U
  near_one,     ///< 1 - 1e-3·U: forgetting so slow that one gate too few or too many hardly shows
  constant,     ///< X everywhere
  zeros,        ///< 0 with probability 1/10, otherwise U: the past is dropped inside the sequence
  reset,        ///< 0 at every multiple of N, X elsewhere
  negative,     ///< 2U - 1
  above_one,    ///< in (1, 1 + 4/T]: the product over all steps is at most e^4
  alternating,  ///< 2, 1/2, 2, …
  tiny,         ///< 2^-100·U, about 1e-30
  log_uniform,  ///< log-uniform over [2^-40, 2^4): 13 decades, centred so far below 1 that products do not
                ///< grow
  subnormal,    ///< subnormal numbers
};

struct Gate {
  GateFamily family = GateFamily::uniform;
  Index period = 0;  ///< N of `reset`
  float value = 0;   ///< X of `constant` and `reset`
  bool operator==(const Gate&) const = default;
};

/// Where entries of q, k, v and beta come from, plainest first. beta and q, k, v have a family each.
enum class ValueFamily {
  unit,          ///< 1 (beta only)
  integers,      ///< in -2…2 for beta, in -3…3 for the others: with gates of 0, 1 and -1 all is exact
  normal,        ///< bell-shaped, mean 0, variance 1, within (-3,3)
  uniform,       ///< U
  small,         ///< 2^-10·normal, about 1e-3
  signed_zeros,  ///< +0 and -0, a quarter each, between normal ones
  dominant,      ///< one entry of each row 2^20 times the others (of beta: one step of each sequence)
  large,         ///< 2^50·normal, about 1e+15; of q, k, v one or two are, so that y stays in float32's range
  zero,          ///< 0 (beta only)
  no_keys,       ///< k is 0, q and v normal (q, k, v only)
};

enum class StateFamily {
  none,    ///< no initial state
  writes,  ///< an initial state of the size of the writes beta·k·v
};

/// How the input tensors lie in memory.
enum class Layout {
  contiguous,  ///< C order
  padded,  ///< rows of an odd pitch longer than the extent, starting one element off; gate and beta with gaps
  permuted,   ///< dimensions in memory in an order drawn for each tensor
  broadcast,  ///< a stride of 0 along dimensions drawn for each tensor: entries there repeat the one at 0
};

std::string_view name(GateFamily family);
std::string_view name(ValueFamily family);
std::string_view name(StateFamily family);
std::string_view name(Layout layout);

/// "near_one", "const:0.9", "reset:4:0.9": what stands in a case text.
std::string gate_text(const Gate& gate);
Gate parse_gate(std::string_view text);

/// recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=unit,qkv=normal,state=none,layout=contiguous,seed=42
struct RecurrenceCase {
  Index B = 1, T = 8, H = 1, K = 4, V = 4;
  Gate gate;
  ValueFamily beta = ValueFamily::unit;
  ValueFamily qkv = ValueFamily::normal;
  StateFamily state = StateFamily::none;
  Layout layout = Layout::contiguous;
  std::uint64_t seed = 1;
  bool operator==(const RecurrenceCase&) const = default;
};

/// Throws InputError (one line) for an unknown key or family, a bad number or an illegal size.
RecurrenceCase recurrence_case_from(const CaseText& text);

/// Every key, in the order of the struct.
CaseText case_text(const RecurrenceCase& c);

/// The tensors. Every entry depends on the seed, the tensor, its own subscripts and its family; `above_one`
/// and `dominant` also on extents. Throws InputError when they do not fit into memory.
Problem make_problem(const RecurrenceCase& c);

/// Cases one step simpler: each has one smaller extent, one plainer family or seed 1 instead of another.
std::vector<RecurrenceCase> simpler(const RecurrenceCase& c);

std::vector<std::pair<std::string, std::string>> families(const RecurrenceCase& c);
double work(const RecurrenceCase& c);

/// A case of any family and layout with work(c) <= largest_work. Sizes straddle powers of two: 31, 32, 33.
RecurrenceCase draw_recurrence_case(Draw& draw, double largest_work);

/// The cases that open every campaign: small ones, the quoted size, and inputs of faults seen in other
/// kernels.
const std::vector<RecurrenceCase>& opening_recurrence_cases();

}  // namespace gaugeblock
