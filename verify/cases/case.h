// A case: a short text that names a problem completely and makes the same tensors, bit for bit, everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gaugeblock/verify/cases/axial_case.h"
#include "gaugeblock/verify/cases/problem.h"
#include "gaugeblock/verify/cases/recurrence_case.h"

namespace gaugeblock {

using Case = std::variant<RecurrenceCase, AxialCase>;

Operation operation_of(const Case& c);

/// Parses "recurrence:B=2,T=128,…". Keys may come in any order; a key left out has its default.
/// Throws InputError (one line) for an unknown operation, key or family, a bad number, or illegal sizes.
Case parse_case(std::string_view text);

/// The complete text, every key in canonical order; parse_case(print_case(c)) == c.
std::string print_case(const Case& c);

/// The tensors of a case. Throws InputError when they do not fit into memory.
Problem make_problem(const Case& c);

/// Cases one step simpler than `c`, most promising first: smaller extents, plainer families. Empty when
/// minimal.
std::vector<Case> simpler(const Case& c);

/// The families a case draws from, as (key, family) pairs, for the distribution a campaign reports.
std::vector<std::pair<std::string, std::string>> families(const Case& c);

/// Multiply-adds of the most laborious form, to plan work.
double work(const Case& c);

/// The largest work of a campaign's case unless something else is asked for.
inline constexpr double largest_campaign_work = 1.5e6;

/// A case from all families and layouts; `largest_work` limits work(c).
Case draw_case(Operation operation, Draw& draw, double largest_work);

/// Case number `index` of the campaign with this seed: the same on every platform and for any number of jobs.
/// Cases after the opening ones stay within `largest_work`.
Case campaign_case(Operation operation, std::uint64_t seed, std::uint64_t index,
                   double largest_work = largest_campaign_work);

/// Cases far beyond a campaign's work, each at the edge of some extent: for a GPU.
std::vector<Case> large_cases(Operation operation);

}  // namespace gaugeblock
