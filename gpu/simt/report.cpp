#include "gaugeblock/gpu/simt/report.h"

#include <cstddef>

namespace gaugeblock::simt {

const char* name_of(ReportKind kind) {
  switch (kind) {
    case ReportKind::barrier_divergence:
      return "barrier_divergence";
    case ReportKind::missing_lane:
      return "missing_lane";
    case ReportKind::divergent_exchange:
      return "divergent_exchange";
    case ReportKind::lane_outside_own_mask:
      return "lane_outside_own_mask";
    case ReportKind::shuffle_source_outside_mask:
      return "shuffle_source_outside_mask";
    case ReportKind::shared_race:
      return "shared_race";
    case ReportKind::global_race:
      return "global_race";
    case ReportKind::global_race_between_blocks:
      return "global_race_between_blocks";
    case ReportKind::uninitialized_shared:
      return "uninitialized_shared";
    case ReportKind::uninitialized_global:
      return "uninitialized_global";
    case ReportKind::shared_out_of_bounds:
      return "shared_out_of_bounds";
    case ReportKind::global_out_of_bounds:
      return "global_out_of_bounds";
    case ReportKind::unknown_memory:
      return "unknown_memory";
    case ReportKind::misaligned_access:
      return "misaligned_access";
    case ReportKind::no_progress:
      return "no_progress";
    case ReportKind::launch_refused:
      return "launch_refused";
  }
  return "unknown";
}

bool is_fatal(ReportKind kind) {
  switch (kind) {
    case ReportKind::shuffle_source_outside_mask:
    case ReportKind::shared_race:
    case ReportKind::global_race:
    case ReportKind::global_race_between_blocks:
    case ReportKind::uninitialized_shared:
    case ReportKind::uninitialized_global:
      return false;
    default:
      return true;
  }
}

std::string lane_ranges(const std::vector<int>& lanes) {
  std::string text;
  for (std::size_t first = 0; first < lanes.size();) {
    std::size_t last = first;
    while (last + 1 < lanes.size() && lanes[last + 1] == lanes[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(lanes[first]);
    if (last > first) text.append("-").append(std::to_string(lanes[last]));
    first = last + 1;
  }
  return text;
}

std::string Report::text() const {
  std::string line = name_of(kind);
  line.append(" in ").append(kernel);
  if (!at.file.empty()) line.append(" at ").append(at.file).append(":").append(std::to_string(at.line));
  line.append(", block (").append(std::to_string(block[0]));
  line.append(",").append(std::to_string(block[1])).append(",").append(std::to_string(block[2])).append(")");
  if (!lanes.empty()) line.append(", lanes ").append(lane_ranges(lanes));
  line.append(": ").append(message);
  if (count > 1) line.append(" (").append(std::to_string(count)).append(" times)");
  return line;
}

}  // namespace gaugeblock::simt
