// What can go wrong with a launch, as types.
#pragma once

#include <stdexcept>
#include <string>

namespace gaugeblock::gpu {

/// The launch is outside the device's limits and was not tried.
class LaunchRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device failed, or found a fault while the kernel ran.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// There is no device of this backend here: no GPU, no driver, or a build without CUDA.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A kernel found, looking at the values, that it cannot take this problem. No output is to be used.
class Declined : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gaugeblock::gpu
