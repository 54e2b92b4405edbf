#include "gaugeblock/verify/variants/last_seen.h"

#include <vector>

namespace gaugeblock {
namespace {

struct SourceDigest {
  const char *operation, *variant, *digest;
};
struct DeviceRecord {
  const char *operation, *variant, *gpu, *driver, *date, *digest;
};
#include "kernel_records.inc"

}  // namespace

std::string source_digest(Operation operation, const std::string& variant) {
  for (const SourceDigest& entry : source_digests)
    if (entry.operation == name(operation) && entry.variant == variant) return entry.digest;
  return {};
}

std::string cuda_compiler() {
  return cuda_compiler_text;
}

std::optional<LastSeen> last_seen(Operation operation, const std::string& variant) {
  std::optional<LastSeen> last;
  for (const DeviceRecord& record : device_records)
    if (record.operation == name(operation) && record.variant == variant &&
        (!last || last->date < record.date))
      last = {record.gpu, record.driver, record.date, record.digest == source_digest(operation, variant)};
  return last;
}

}  // namespace gaugeblock
