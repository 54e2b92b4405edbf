// Which problems become golden files, and why.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gaugeblock {

struct GoldenCase {
  std::string id;         ///< name of the file without its ending; never used again for another problem
  std::string case_text;  ///< its problem
  std::vector<std::string> flags;
  std::string source;  ///< who reported the fault, or whose analysis asks for the case
};

/// Every golden case. No two have the same id.
const std::vector<GoldenCase>& golden_cases();

/// What each flag means: a fault and how it shows. Every flag of a case is here, and none that no case has.
const std::vector<std::pair<std::string, std::string>>& golden_flags();

}  // namespace gaugeblock
