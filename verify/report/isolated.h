// Judges cases in a child process, so that what a variant does to its process cannot reach the next case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/verify/report/campaign.h"

namespace gaugeblock {

/// check_case() in a child process. The child lives on from case to case, so that a device is opened once;
/// when it dies, gives no answer in time, or has lost its device, the variant it was at gets the outcome
/// `error` and a new child takes over. The parent must not have opened a CUDA device: a child cannot use its.
/// Not to be shared between threads.
class IsolatedChecker {
 public:
  /// `variants` must outlive the checker.
  explicit IsolatedChecker(const std::vector<Variant>& variants, double patience_seconds = 600);
  ~IsolatedChecker();
  IsolatedChecker(IsolatedChecker&& other) noexcept;
  IsolatedChecker(const IsolatedChecker&) = delete;
  IsolatedChecker& operator=(const IsolatedChecker&) = delete;

  /// As check_case(). Precondition: the pointers point into `variants`.
  std::vector<CaseVerdict> check(const std::vector<const Variant*>& chosen, const Case& c,
                                 RelationEffort effort);

 private:
  using Bytes = std::vector<std::uint8_t>;

  void start();
  /// Waits for the child's end, and says how it came.
  std::string stop();
  bool send(const Bytes& message);
  /// Nothing when the child has died or is silent for longer than the patience.
  std::optional<Bytes> receive();
  [[noreturn]] void serve(int socket);

  const std::vector<Variant>& variants_;
  double patience_seconds_;
  int process_ = -1;
  int socket_ = -1;
  bool silent_ = false;  // killed because it gave no answer
};

/// Why the CUDA backend cannot be used, in one line; nothing when it can. Asked in a child process.
std::optional<std::string> cuda_refusal();

}  // namespace gaugeblock
