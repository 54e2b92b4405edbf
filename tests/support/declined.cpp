#include "declined.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/report/campaign.h"
#include "sizes.h"

namespace gaugeblock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t campaign_seed = 1;
constexpr std::uint64_t campaign_cases = 2000;

/// One variant's answers.
class Count {
 public:
  void add(const std::optional<std::string>& reason) {
    ++problems_;
    if (!reason) return;
    static const std::regex number(R"(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)");
    ++reasons_[std::regex_replace(*reason, number, "#")];
  }
  Json entry(Operation operation, const std::string& name, const std::string& backend,
             const std::string& asked) const {
    Json json{{"op", std::string(gaugeblock::name(operation))},
              {"variant", name},
              {"backend", backend},
              {"asked", asked},
              {"problems", problems_},
              {"declined", Json::object()}};
    for (const auto& [reason, count] : reasons_) json["declined"][reason] = count;
    return json;
  }

 private:
  std::uint64_t problems_ = 0;
  std::map<std::string, std::uint64_t> reasons_;
};

/// Sizes whose products stay far from what Index holds.
bool fit(std::initializer_list<Index> extents) {
  double product = 1;
  for (const Index extent : extents) product *= static_cast<double>(std::max<Index>(extent, 1));
  return product < 0x1p56;
}

void ask_about_sizes(const gpu::RecurrenceKernel& kernel, Count& count) {
  const std::vector<Index> channels{1,   2,   3,   4,   8,   16,  24,  31,   32,   33,   64,   65,   96,
                                    127, 128, 129, 255, 256, 257, 512, 1023, 1024, 1025, 2048, 8192, 65536};
  for (const Index B : {Index{1}, Index{65536}})
    for (const Index T :
         {Index{0}, Index{1}, Index{64}, Index{1024}, Index{1025}, Index{65536}, Index{1} << 31})
      for (const Index H : {Index{1}, Index{8}, Index{32768}})
        for (const Index K : channels)
          for (const Index V : channels)
            if (fit({B, T, H, K, V})) count.add(kernel.declines(gpu::recurrence_of_sizes(B, T, H, K, V)));
}

void ask_about_sizes(const gpu::AxialKernel& kernel, Count& count) {
  const std::vector<Index> lengths{1, 2, 31, 64, 65, 128, 256, 257, 512, 1024, 2048, 65536};
  for (const Index B : {Index{1}, Index{65}, Index{65536}})
    for (const Index H : lengths)
      for (const Index W : lengths)
        for (const Index D : {1, 8, 24, 64, 96, 128, 192, 256, 512, 1023, 1024, 1025, 2048, 8192})
          for (const Index heads : {1, 2, 4, 8, 64})
            for (const AxialPasses passes : {AxialPasses::both, AxialPasses::row, AxialPasses::col})
              if (D % heads == 0 && fit({B, H, W, D, D}))
                count.add(kernel.declines(gpu::axial_of_sizes(B, H, W, D, heads, passes)));
}

template <class Kernel>
void add_sizes(Json& entries, const Variant& variant, const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    if (kernel.name != variant.name) continue;
    Count count;
    ask_about_sizes(kernel, count);
    entries.push_back(count.entry(variant.operation, variant.name, variant.backend, "sizes"));
  }
}

}  // namespace

Json declined_problems(const std::vector<const Variant*>& variants) {
  std::map<const Variant*, Count> counts;
  for (const Operation operation : {Operation::recurrence, Operation::axial}) {
    const bool asked = std::any_of(variants.begin(), variants.end(), [operation](const Variant* variant) {
      return variant->operation == operation;
    });
    for (std::uint64_t index = 0; asked && index < campaign_cases; ++index) {
      const Problem problem =
          make_problem(campaign_case(operation, campaign_seed, index, largest_interpreted_work));
      for (const Variant* variant : variants)
        if (variant->operation == operation) counts[variant].add(variant->declines(problem));
    }
  }
  Json entries = Json::array();
  for (const Variant* variant : variants) {
    entries.push_back(counts[variant].entry(variant->operation, variant->name, variant->backend, "campaign"));
    if (variant->backend != "simt") continue;
    if (variant->operation == Operation::recurrence)
      add_sizes(entries, *variant, gpu::simt_backend::recurrence_kernels());
    else
      add_sizes(entries, *variant, gpu::simt_backend::axial_kernels());
  }
  return entries;
}

std::string name_of_declined(const Json& entry) {
  return fmt::format("{} on {}, {}", entry["variant"].get<std::string>(), entry["backend"].get<std::string>(),
                     entry["asked"].get<std::string>());
}

}  // namespace gaugeblock
