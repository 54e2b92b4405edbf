// One way to launch a kernel, the same on both backends. Included by kernel sources (.cu) only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "gaugeblock/gpu/runtime/device.h"
#include "gaugeblock/gpu/simt/simt.h"

/// A kernel and its name, for launch(): GAUGEBLOCK_KERNEL(scale), GAUGEBLOCK_KERNEL(scale<4, true>).
#define GAUGEBLOCK_KERNEL(...) (::gaugeblock::gpu::named_kernel(&(__VA_ARGS__), #__VA_ARGS__))

namespace gaugeblock::gpu {

/// Whether a kernel waits for the one in front of it in the stream, or does so by itself once it runs
/// (dependent_launch.h).
enum class Begin { after_kernel_in_front, while_it_ends };

/// Checks the shape, opts in to more than 48 KB of shared memory where needed, launches, and checks again.
/// `arguments`: the addresses of the kernel's arguments.
void launch_on_cuda(const char* name, const void* function, const simt::LaunchShape& shape, Begin begin,
                    LaunchContext& context, void** arguments);

/// Refuses or fails as its record says.
void finish_interpreted(LaunchContext& context, simt::LaunchRecord record);

namespace GAUGEBLOCK_BACKEND {

template <class... Parameters>
struct Kernel {
  void (*function)(Parameters...);
  const char* name;
};

template <class... Parameters>
Kernel<Parameters...> named_kernel(void (*function)(Parameters...), const char* name) {
  return {function, name};
}

/// launch(), and when the kernel may begin; the interpreter runs one after the other.
template <class... Parameters, class... Arguments>
void launch_that_begins([[maybe_unused]] Begin begin, const Kernel<Parameters...>& kernel, dim3 grid,
                        dim3 block, std::size_t dynamic_shared_bytes, LaunchContext& context,
                        const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "as many arguments as the kernel has parameters");
  simt::LaunchShape shape;
  shape.grid = {grid.x, grid.y, grid.z};
  shape.block = {block.x, block.y, block.z};
  shape.dynamic_shared_bytes = dynamic_shared_bytes;
#if defined(__CUDACC__)
  const auto with_addresses = [&](Parameters... values) {
    std::array<void*, sizeof...(Parameters) + 1> addresses{
        const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
    launch_on_cuda(kernel.name, reinterpret_cast<const void*>(kernel.function), shape, begin, context,
                   addresses.data());
  };
  with_addresses(static_cast<Parameters>(arguments)...);
#else
  shape.shared_opt_in = true;
  finish_interpreted(context, simt::interpret(kernel.name, shape, context.simt, [&] {
                       kernel.function(static_cast<Parameters>(arguments)...);
                     }));
#endif
}

/// Runs `kernel` on `grid` × `block` threads, with `dynamic_shared_bytes` of dynamic shared memory.
/// Throws LaunchRefused when the shape is outside the device's limits, before anything runs; DeviceError when
/// the launch or the kernel fails (with context.wait off, a failing kernel shows at the next
/// synchronisation).
template <class... Parameters, class... Arguments>
void launch(const Kernel<Parameters...>& kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes,
            LaunchContext& context, const Arguments&... arguments) {
  launch_that_begins(Begin::after_kernel_in_front, kernel, grid, block, dynamic_shared_bytes, context,
                     arguments...);
}

}  // namespace GAUGEBLOCK_BACKEND

// One source sees one backend.
using namespace GAUGEBLOCK_BACKEND;

}  // namespace gaugeblock::gpu
