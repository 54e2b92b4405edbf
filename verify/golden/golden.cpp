#include "gaugeblock/verify/golden/golden.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <variant>

#include "gaugeblock/verify/bounds/likely.h"
#include "gaugeblock/verify/bounds/oracle.h"
#include "gaugeblock/verify/cases/case.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/files/problem_file.h"
#include "gaugeblock/verify/golden/golden_cases.h"

namespace gaugeblock {
namespace {

// How far a golden value may be from the one computed again, relative. A file that was changed shows by its
// hash; these say whether this program would still write it on this host.
constexpr double expected_tolerance = 0x1p-52;  // one rounding to float64 apart
constexpr double limit_tolerance = 1e-9;        // float64 sums over the host's exp and sqrt
// The likely limit of the axial block contains the errors of float32 runs with the host's expf: where expf
// differs in its last bit, so does such an error by about its own size.
constexpr double axial_sigma_tolerance = 0.5;

/// Golden values of `row`, which nobody has to hand over, are left out where they would nearly double a large
/// file.
constexpr Index most_row_elements = 50'000;

using Json = nlohmann::ordered_json;

std::string file_name(const GoldenCase& golden) {
  return golden.id + ".safetensors";
}

/// The golden file of a case, computed.
SafetensorsFile compute(const GoldenCase& golden) {
  const Problem problem = make_problem(parse_case(golden.case_text));
  const auto oracle = make_oracle(problem, Truth::high_precision);
  const Arithmetic arithmetic = unknown_arithmetic(problem.operation);
  GoldenData data;
  for (const auto& [output, shape] : output_shapes(problem)) {
    if (output == "row" && element_count(shape, output) > most_row_elements) continue;
    GoldenValues& values = data[output];
    values.expected = oracle->expected(output);
    values.bound = oracle->proved(output, arithmetic);
    values.sigma = oracle->likely(output, arithmetic);
    for (double& sigma : values.sigma) sigma /= likely_sigmas;
  }
  SafetensorsFile file = problem_file(problem);
  file.name = golden.id;
  file.metadata["gaugeblock.claim"] =
      problem.operation == Operation::recurrence ? "recurrence.any_form" : "axial.any_form";
  add_golden(file, data, problem);
  return file;
}

std::string read_bytes(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError(path_text(path) + ": expected a file; found a folder");
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw InputError(path_text(path) + ": expected a readable file");
  return bytes;
}

std::string sha256(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) != 1)
    throw DeviceFailure("SHA-256: libcrypto refuses to compute it");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

/// What the index says of a case, but for the hash.
Json index_entry(const GoldenCase& golden) {
  Json entry;
  entry["id"] = golden.id;
  entry["file"] = file_name(golden);
  entry["op"] = name(operation_of(parse_case(golden.case_text)));
  entry["case"] = print_case(parse_case(golden.case_text));
  entry["flags"] = golden.flags;
  entry["source"] = golden.source;
  return entry;
}

Json index_of(const std::vector<GoldenCase>& cases, const std::map<std::string, std::string>& hashes) {
  std::set<std::string> flags;
  for (const GoldenCase& golden : cases) flags.insert(golden.flags.begin(), golden.flags.end());
  Json index;
  index["format"] = "1";
  for (const auto& [flag, meaning] : golden_flags())
    if (flags.contains(flag)) index["flags"][flag] = meaning;
  index["files"] = Json::array();
  for (const GoldenCase& golden : cases) {
    Json entry = index_entry(golden);
    entry["sha256"] = hashes.at(golden.id);
    index["files"].push_back(std::move(entry));
  }
  return index;
}

/// Names of files in the folder that no golden case has.
std::vector<std::string> strangers(const std::filesystem::path& folder,
                                   const std::vector<GoldenCase>& cases) {
  std::set<std::string> known{"index.json"};
  for (const GoldenCase& golden : cases) known.insert(file_name(golden));
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    throw InputError(fmt::format("{}: expected a readable folder; {}", path_text(folder), error.message()));
  for (const auto& entry : entries)
    if (!known.contains(entry.path().filename().string()))
      names.push_back(path_text(entry.path().filename()));
  std::sort(names.begin(), names.end());
  return names;
}

bool same_value(float stored, float computed, double /*tolerance*/) {
  return same_bits(stored, computed);
}

bool same_value(double stored, double computed, double tolerance) {
  if (std::isnan(stored) || std::isnan(computed)) return std::isnan(stored) && std::isnan(computed);
  return stored == computed || std::abs(stored - computed) <= tolerance * std::abs(computed);
}

/// Inputs are float32 and the same bit by bit.
double tolerance_of(const std::string& tensor, Operation operation) {
  if (tensor.starts_with("expected.")) return expected_tolerance;
  if (tensor.starts_with("bound.")) return limit_tolerance;
  if (tensor.starts_with("sigma."))
    return operation == Operation::axial ? axial_sigma_tolerance : limit_tolerance;
  return 0;
}

/// The first difference between two tensors, as words, or "".
std::string difference(const FileTensor& stored, const FileTensor& computed, double tolerance) {
  if (stored.shape != computed.shape || stored.values.index() != computed.values.index())
    return fmt::format("expected {} {}, found {} {}", computed.values.index() == 0 ? "F32" : "F64",
                       shape_text(computed.shape), stored.values.index() == 0 ? "F32" : "F64",
                       shape_text(stored.shape));
  return std::visit(
      [&](const auto& wanted) -> std::string {
        const auto& found = std::get<std::decay_t<decltype(wanted)>>(stored.values);
        std::size_t differing = 0, first = 0;
        for (std::size_t element = wanted.size(); element-- > 0;) {
          if (same_value(found[element], wanted[element], tolerance)) continue;
          ++differing;
          first = element;
        }
        if (differing == 0) return "";
        return fmt::format("expected {} at {}; found {} ({} of {} elements differ)", wanted[first],
                           shape_text(subscripts(stored.shape, static_cast<Index>(first))), found[first],
                           differing, wanted.size());
      },
      computed.values);
}

void compare(const SafetensorsFile& stored, const SafetensorsFile& computed, const std::string& name,
             std::vector<std::string>& differences) {
  const Operation operation = parse_operation(computed.metadata.at("gaugeblock.op"));
  if (stored.metadata != computed.metadata)
    differences.push_back(fmt::format("{}: metadata: expected {}; found {}", name,
                                      Json(computed.metadata).dump(), Json(stored.metadata).dump()));
  for (const auto& [tensor, content] : computed.tensors) {
    const auto found = stored.tensors.find(tensor);
    const std::string what = found == stored.tensors.end()
                                 ? "expected it; found none"
                                 : difference(found->second, content, tolerance_of(tensor, operation));
    if (!what.empty()) differences.push_back(fmt::format("{}: {}: {}", name, tensor, what));
  }
  for (const auto& [tensor, content] : stored.tensors)
    if (!computed.tensors.contains(tensor))
      differences.push_back(
          fmt::format("{}: {}: expected no such tensor; found it", name, quoted_text(tensor)));
}

Json read_index(const std::filesystem::path& folder) {
  const auto path = folder / "index.json";
  Json index = Json::parse(read_bytes(path), nullptr, false);
  if (index.is_discarded()) throw InputError(path_text(path) + ": expected JSON; found something else");
  return index;
}

}  // namespace

void write_golden(const std::filesystem::path& folder, const GoldenProgress& progress,
                  const std::vector<GoldenCase>& cases) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::error_code unseen;
  if (!std::filesystem::is_directory(folder, unseen))
    throw InputError(fmt::format("{}: expected a folder, or a place for one; {}", path_text(folder),
                                 error ? error.message() : "found a file"));
  if (const auto names = strangers(folder, cases); !names.empty())
    throw InputError(
        fmt::format("{}: expected golden files alone; found {} there", path_text(folder), names.front()));
  std::map<std::string, std::string> hashes;
  for (const GoldenCase& golden : cases) {
    if (progress) progress(hashes.size(), cases.size(), golden.id);
    const SafetensorsFile file = compute(golden);
    write_safetensors(file, folder / file_name(golden));
    hashes[golden.id] = sha256(print_safetensors(file));
  }
  if (progress) progress(hashes.size(), hashes.size(), "");
  const auto path = folder / "index.json";
  std::ofstream stream(path, std::ios::binary);
  stream << index_of(cases, hashes).dump(2) << '\n';
  stream.close();
  if (!stream) throw InputError(path_text(path) + ": expected a file that can be written");
}

GoldenReport check_golden(const std::filesystem::path& folder, const GoldenProgress& progress,
                          const std::vector<GoldenCase>& cases) {
  GoldenReport report;
  const Json index = read_index(folder);
  for (const std::string& name : strangers(folder, cases))
    report.differences.push_back(name + ": expected golden files alone; found it beside them");

  std::map<std::string, std::string> hashes;
  for (const GoldenCase& golden : cases) {
    if (progress) progress(report.files, cases.size(), golden.id);
    ++report.files;
    const auto path = folder / file_name(golden);
    hashes[golden.id] = "";
    try {
      hashes[golden.id] = sha256(read_bytes(path));
      compare(read_safetensors(path), compute(golden), file_name(golden), report.differences);
    } catch (const InputError& error) {
      report.differences.emplace_back(error.what());
    }
  }
  if (progress) progress(report.files, report.files, "");
  // The hashes are those of the files as they lie there, so that they show a file changed after the index.
  if (index != index_of(cases, hashes)) {
    const Json patch = Json::diff(index_of(cases, hashes), index);
    report.differences.push_back("index.json: expected other contents; first difference " +
                                 patch.front().dump());
  }
  return report;
}

}  // namespace gaugeblock
