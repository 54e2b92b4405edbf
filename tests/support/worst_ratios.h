// How near real float32 code comes to each proved bound: the largest error/bound, claim by claim, on problems
// generated at random and on inputs built to be bad.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gaugeblock/verify/cases/problem.h"

namespace gaugeblock {

struct WorstRatio {
  double ratio = 0;  ///< |computed - exact| / bound; above 1 the claim, or the code, is wrong
  std::string where;
};

/// By the id of the claim. A claim is absent when nothing was measured of it.
using WorstRatios = std::map<std::string, WorstRatio>;

/// Takes in every form of the recurrence on this problem, with and without FMA, each against the bounds of
/// its own claims and of recurrence.any_form; elements whose bound is mostly underflow also count for
/// recurrence.underflow.
void measure_recurrence(const Problem& problem, const std::string& where, WorstRatios& worst);

/// Takes in every form of the axial block (axial.block, axial.any_form), and its stages one by one, each on
/// float32 inputs that are taken as exact.
void measure_axial(const Problem& problem, const std::string& where, WorstRatios& worst);

/// Over `cases` generated problems of each operation.
WorstRatios campaign_worst_ratios(std::uint64_t seed, std::uint64_t cases);

/// How long to search for bad inputs.
struct SearchEffort {
  int candidates = 40;  ///< tried in place of each input
  int sweeps = 3;       ///< over all inputs, after a greedy one
  Index longest = 64;   ///< steps of a recurrence: 1, 2, 4 … longest
  Index widest = 8;     ///< channels of an axial sequence
};

/// On inputs built to be bad: starting near powers of two, where a rounding may change a number most, the
/// bits of one input after the other are chosen such that the roundings push the result the same way.
WorstRatios search_worst_ratios(std::uint64_t seed, const SearchEffort& effort);

}  // namespace gaugeblock
