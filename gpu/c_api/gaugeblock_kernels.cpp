#include "gaugeblock/gpu/c_api/gaugeblock_kernels.h"

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <string>

#include "gaugeblock/gpu/choice.h"
#include "gaugeblock/gpu/runtime/callers_workspace.h"

namespace {

using namespace gaugeblock;

thread_local std::string message;

struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& expected) {
  if (!holds) throw BadInput("expected " + expected);
}

template <int Rank, class T>
TensorView<T, Rank> view(T* data, const std::array<Index, Rank>& shape, const int64_t (&stride)[Rank],
                         const char* name) {
  Index elements = 1;
  for (const Index extent : shape) elements *= extent;
  require(data != nullptr || elements == 0, std::string(name) + " not to be NULL");
  TensorView<T, Rank> result{data, shape, {}};
  std::copy(stride, stride + Rank, result.stride.begin());
  return result;
}

template <int Rank>
TensorView<const float, Rank> parameter(const float* data, const std::array<Index, Rank>& shape,
                                        const char* name) {
  require(data != nullptr, std::string(name) + " not to be NULL");
  return contiguous_view<const float, Rank>(data, shape);
}

gpu::RecurrenceArguments arguments_of(const gaugeblock_recurrence* problem) {
  require(problem != nullptr, "a problem, found NULL");
  const auto& p = *problem;
  require(p.batches >= 1 && p.heads >= 1 && p.key_size >= 1 && p.value_size >= 1 && p.steps >= 0,
          "batches, heads, key_size and value_size of at least 1, and steps of at least 0");
  const Index B = p.batches, T = p.steps, H = p.heads, K = p.key_size, V = p.value_size;
  gpu::RecurrenceArguments arguments;
  arguments.q = view<4>(p.q, {B, T, H, K}, p.q_stride, "q");
  arguments.k = view<4>(p.k, {B, T, H, K}, p.k_stride, "k");
  arguments.v = view<4>(p.v, {B, T, H, V}, p.v_stride, "v");
  arguments.gate = view<3>(p.gate, {B, T, H}, p.gate_stride, "gate");
  arguments.beta = view<3>(p.beta, {B, T, H}, p.beta_stride, "beta");
  if (p.initial_state != nullptr)
    arguments.initial_state = view<4>(p.initial_state, {B, H, K, V}, p.initial_state_stride, "initial_state");
  arguments.y = view<4>(p.y, {B, T, H, V}, p.y_stride, "y");
  arguments.final_state = view<4>(p.final_state, {B, H, K, V}, p.final_state_stride, "final_state");
  return arguments;
}

AxialPassParameters parameters_of(const gaugeblock_axial_pass& pass, Index D) {
  return {parameter<1>(pass.norm_weight, {D}, "norm_weight"), parameter<1>(pass.norm_bias, {D}, "norm_bias"),
          parameter<2>(pass.qkv_weight, {3 * D, D}, "qkv_weight"),
          parameter<2>(pass.out_weight, {D, D}, "out_weight"), parameter<1>(pass.out_bias, {D}, "out_bias")};
}

gpu::AxialArguments arguments_of(const gaugeblock_axial* problem) {
  require(problem != nullptr, "a problem, found NULL");
  const auto& p = *problem;
  require(p.batches >= 1 && p.height >= 1 && p.width >= 1 && p.channels >= 1,
          "batches, height, width and channels of at least 1");
  require(p.heads >= 1 && p.channels % p.heads == 0, "heads that divide the channels");
  require(p.passes == GAUGEBLOCK_BOTH || p.passes == GAUGEBLOCK_ROW || p.passes == GAUGEBLOCK_COL,
          "passes to be one of gaugeblock_passes");
  const std::array<Index, 4> shape{p.batches, p.height, p.width, p.channels};
  gpu::AxialArguments arguments;
  arguments.x = view<4>(p.x, shape, p.x_stride, "x");
  arguments.y = view<4>(p.y, shape, p.y_stride, "y");
  arguments.heads = p.heads;
  arguments.eps = p.eps;
  arguments.passes = p.passes == GAUGEBLOCK_BOTH  ? AxialPasses::both
                     : p.passes == GAUGEBLOCK_ROW ? AxialPasses::row
                                                  : AxialPasses::col;
  if (p.passes != GAUGEBLOCK_COL) arguments.row = parameters_of(p.row, p.channels);
  if (p.passes != GAUGEBLOCK_ROW) arguments.col = parameters_of(p.col, p.channels);
  return arguments;
}

const std::vector<gpu::RecurrenceKernel>& kernels_for(const gpu::RecurrenceArguments&) {
  return gpu::cuda_backend::recurrence_kernels();
}
const std::vector<gpu::AxialKernel>& kernels_for(const gpu::AxialArguments&) {
  return gpu::cuda_backend::axial_kernels();
}

/// The kernel named, or the one `auto` takes. Throws gpu::Declined when it, or every one, declines.
template <class Arguments>
const auto& kernel_for(const Arguments& arguments, const char* variant) {
  const std::string architecture = gpu::current_cuda_architecture();
  if (variant == nullptr) {
    const auto choice = gpu::choose_kernel(arguments, architecture);
    if (choice.kernel == nullptr) throw gpu::Declined(choice.reason);
    message = choice.reason;
    return *choice.kernel;
  }
  for (const auto& kernel : kernels_for(arguments)) {
    if (kernel.name != variant) continue;
    if (const auto reason = gpu::declines_architecture(kernel.architecture, architecture))
      throw gpu::Declined(*reason);
    if (const auto reason = kernel.declines(arguments)) throw gpu::Declined(*reason);
    return kernel;
  }
  throw BadInput(std::string("expected the name of a variant, found '") + variant + "'");
}

gpu::LaunchContext context_on(gpu::CallersWorkspace& workspace, void* stream) {
  gpu::LaunchContext context(workspace);
  context.stream = stream;
  context.wait = false;
  return context;
}

/// Bytes that kernel.run() allocates.
template <class Kernel, class Arguments>
std::size_t counted_bytes(const Kernel& kernel, const Arguments& arguments) {
  gpu::CallersWorkspace counting;
  gpu::LaunchContext context = context_on(counting, nullptr);
  context.dry = true;
  kernel.run(arguments, context);
  return counting.most_used_bytes();
}

void require_bytes(void* workspace, std::size_t bytes, std::size_t needed) {
  require(bytes >= needed,
          "a workspace of at least " + std::to_string(needed) + " bytes, found " + std::to_string(bytes));
  require(needed == 0 || (workspace != nullptr && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0),
          "a workspace aligned to 256 bytes");
}

/// Calls `body`; a status for whatever it throws.
template <class Body>
gaugeblock_status status_of(const Body& body) {
  try {
    message.clear();
    body();
    return GAUGEBLOCK_OK;
  } catch (const BadInput& error) {
    message = error.what();
    return GAUGEBLOCK_BAD_INPUT;
  } catch (const gpu::Declined& error) {
    message = error.what();
    return GAUGEBLOCK_UNSUPPORTED;
  } catch (const std::exception& error) {
    message = error.what();
    return GAUGEBLOCK_DEVICE_FAILED;
  }
}

}  // namespace

extern "C" {

const char* gaugeblock_message(void) {
  return message.c_str();
}

gaugeblock_status gaugeblock_recurrence_variant(const gaugeblock_recurrence* problem, const char** variant) {
  return status_of([&] {
    require(variant != nullptr, "a place for the name, found NULL");
    *variant = kernel_for(arguments_of(problem), nullptr).name.c_str();
  });
}

gaugeblock_status gaugeblock_recurrence_workspace(const gaugeblock_recurrence* problem, const char* variant,
                                                  size_t* bytes) {
  return status_of([&] {
    require(bytes != nullptr, "a place for the bytes, found NULL");
    const gpu::RecurrenceArguments arguments = arguments_of(problem);
    *bytes = counted_bytes(kernel_for(arguments, variant), arguments);
  });
}

gaugeblock_status gaugeblock_recurrence_launch(const gaugeblock_recurrence* problem, const char* variant,
                                               void* workspace, size_t workspace_bytes, void* stream) {
  return status_of([&] {
    const gpu::RecurrenceArguments arguments = arguments_of(problem);
    const gpu::RecurrenceKernel& kernel = kernel_for(arguments, variant);
    require_bytes(workspace, workspace_bytes, counted_bytes(kernel, arguments));
    gpu::CallersWorkspace memory(workspace, workspace_bytes);
    gpu::LaunchContext context = context_on(memory, stream);
    kernel.run(arguments, context);
  });
}

gaugeblock_status gaugeblock_axial_variant(const gaugeblock_axial* problem, const char** variant) {
  return status_of([&] {
    require(variant != nullptr, "a place for the name, found NULL");
    *variant = kernel_for(arguments_of(problem), nullptr).name.c_str();
  });
}

gaugeblock_status gaugeblock_axial_workspace(const gaugeblock_axial* problem, const char* variant,
                                             size_t* bytes) {
  return status_of([&] {
    require(bytes != nullptr, "a place for the bytes, found NULL");
    const gpu::AxialArguments arguments = arguments_of(problem);
    const gpu::AxialKernel& kernel = kernel_for(arguments, variant);
    *bytes = kernel.steps.launch != nullptr ? kernel.steps.workspace_bytes(arguments)
                                            : counted_bytes(kernel, arguments);
  });
}

gaugeblock_status gaugeblock_axial_prepare(const gaugeblock_axial* problem, const char* variant,
                                           void* workspace, size_t workspace_bytes, void* stream) {
  return status_of([&] {
    const gpu::AxialArguments arguments = arguments_of(problem);
    const gpu::AxialKernel& kernel = kernel_for(arguments, variant);
    if (kernel.steps.prepare == nullptr) return;  // it takes the parameters as they are
    require_bytes(workspace, workspace_bytes, kernel.steps.workspace_bytes(arguments));
    gpu::CallersWorkspace memory(workspace, workspace_bytes);
    gpu::LaunchContext context = context_on(memory, stream);
    kernel.steps.prepare(arguments, workspace, context);
  });
}

gaugeblock_status gaugeblock_axial_launch(const gaugeblock_axial* problem, const char* variant,
                                          void* workspace, size_t workspace_bytes, void* stream) {
  return status_of([&] {
    const gpu::AxialArguments arguments = arguments_of(problem);
    const gpu::AxialKernel& kernel = kernel_for(arguments, variant);
    const bool in_steps = kernel.steps.launch != nullptr;
    require_bytes(workspace, workspace_bytes,
                  in_steps ? kernel.steps.workspace_bytes(arguments) : counted_bytes(kernel, arguments));
    gpu::CallersWorkspace memory(workspace, workspace_bytes);
    gpu::LaunchContext context = context_on(memory, stream);
    if (in_steps)
      kernel.steps.launch(arguments, workspace, context);
    else
      kernel.run(arguments, context);
  });
}

}  // extern "C"
