// The CUDA kernels as variants of the backends simt and cuda.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/gpu/axial/kernel_arguments.h"
#include "gaugeblock/gpu/recurrence/kernel_arguments.h"
#include "gaugeblock/verify/variants/device_run.h"
#include "gaugeblock/verify/variants/variant.h"

namespace gaugeblock {

/// Every kernel on the interpreter, and on the GPU in builds with CUDA.
std::vector<Variant> gpu_variants();

/// The name of the kernel that choose_variant() takes (empty: none), and why. Only in builds with CUDA.
std::pair<std::string, std::string> choose_kernel_name(const Problem& problem);

/// Starts kernels on tensors that lie on the device already, and nothing else.
using KernelLaunch = std::function<void(const DeviceTensors&, gpu::LaunchContext&)>;

/// What `run` of a variant of the backends simt or cuda does between the copies: for measuring its kernels.
KernelLaunch launch_of(const Variant& variant);

/// A run of a variant of the backend cuda with memory of its own for each tensor, where a campaign's have one
/// block: slower, but compute-sanitizer sees more.
RunAgain run_apart(const Variant& variant);

/// What a kernel takes, from a problem's tensors on a device.
gpu::RecurrenceArguments recurrence_arguments(const DeviceTensors& tensors);
gpu::AxialArguments axial_arguments(const DeviceTensors& tensors);

}  // namespace gaugeblock
