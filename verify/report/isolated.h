// Judges cases in a child process, so that what a variant does to its process cannot reach the next case.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gaugeblock/verify/report/campaign.h"

namespace gaugeblock {

/// check_case() in a child process, which lives on from case to case, so that a device is opened once. When
/// it dies, gives no answer in time, or has lost its device, the variant it was at gets the outcome `error`
/// and a new child takes over. The parent must not have opened a CUDA device: a child cannot use its
/// parent's. Not to be shared between threads.
class IsolatedChecker {
 public:
  /// One checker for each of `jobs` threads. They begin with one child between them, because a GPU is slow to
  /// change from process to process; what goes wrong there is done again in a child of the checker's own, so
  /// that it is known whose fault it was. `variants` must outlive the checkers.
  static std::vector<IsolatedChecker> several(const std::vector<Variant>& variants, unsigned jobs,
                                              double patience_seconds = 600);

  ~IsolatedChecker();
  IsolatedChecker(IsolatedChecker&& other) noexcept;
  IsolatedChecker(const IsolatedChecker&) = delete;
  IsolatedChecker& operator=(const IsolatedChecker&) = delete;

  /// As check_case(). Precondition: the pointers point into `variants`.
  std::vector<CaseVerdict> check(const std::vector<const Variant*>& chosen, const Case& c,
                                 RelationEffort effort);

 private:
  class Child;

  IsolatedChecker(const std::vector<Variant>& variants, double patience_seconds);
  void start();
  /// Leaves the child; how it ended, when it was this checker's own.
  std::string leave();

  const std::vector<Variant>& variants_;
  double patience_seconds_;
  std::shared_ptr<Child> child_;  // null: to be started
  int socket_ = -1;
  bool is_shared_ = false;
};

/// Why the CUDA backend cannot be used, in one line; nothing when it can. Asked in a child process.
std::optional<std::string> cuda_refusal();

}  // namespace gaugeblock
