// Errors that end a command, and with which exit code.
#pragma once

#include <stdexcept>

namespace gaugeblock {

/// Bad usage or bad input: the command exits with 2. The message is one line: what was expected, what was
/// found.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program or the device failed: the command exits with 3.
class DeviceFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A variant did something no run may do, whatever its numbers: the verdict is fail. The message says what.
class RunPropertyBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Nothing to judge, or a variant that declines the problem: the command exits with 4.
class NothingToJudge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gaugeblock
