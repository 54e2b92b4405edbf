#include "gaugeblock/verify/variants/gpu_variants.h"

#include <stdexcept>

#include "gaugeblock/gpu/axial/kernels.h"
#include "gaugeblock/gpu/choice.h"
#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/gpu/runtime/callers_workspace.h"
#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/axial_cpu.h"
#include "gaugeblock/verify/variants/device_run.h"

namespace gaugeblock {

gpu::RecurrenceArguments recurrence_arguments(const DeviceTensors& tensors) {
  gpu::RecurrenceArguments arguments;
  arguments.q = tensors.input<4>("q");
  arguments.k = tensors.input<4>("k");
  arguments.v = tensors.input<4>("v");
  arguments.gate = tensors.input<3>("gate");
  arguments.beta = tensors.input<3>("beta");
  if (tensors.has("initial_state")) arguments.initial_state = tensors.input<4>("initial_state");
  arguments.y = tensors.output<4>("y");
  arguments.final_state = tensors.output<4>("final_state");
  return arguments;
}

namespace {

AxialPassParameters parameters(const DeviceTensors& tensors, const std::string& pass) {
  if (!tensors.has(pass + "_norm.weight")) return {};  // the pass does not run
  return {tensors.input<1>(pass + "_norm.weight"), tensors.input<1>(pass + "_norm.bias"),
          tensors.input<2>(pass + "_qkv.weight"), tensors.input<2>(pass + "_out.weight"),
          tensors.input<1>(pass + "_out.bias")};
}

}  // namespace

gpu::AxialArguments axial_arguments(const DeviceTensors& tensors) {
  const Attributes& attributes = tensors.attributes();
  gpu::AxialArguments arguments;
  arguments.x = tensors.input<4>("x");
  arguments.row = parameters(tensors, "row");
  arguments.col = parameters(tensors, "col");
  arguments.heads = attributes.heads;
  arguments.eps = attributes.eps;
  arguments.passes = attributes.passes;
  arguments.y = tensors.output<4>("y");
  if (tensors.has("row")) arguments.row_result = tensors.output<4>("row");
  return arguments;
}

namespace {

/// Relative error of CUDA's expf in units of u = 2^-24: 2.5578 at worst over every float in [-104, 0] whose
/// result is normal (tests/bench/measure_exp.cu; H200, driver 580.159, nvcc 13.0 with -fmad=false). CUDA
/// documents 2 ulp, which is within 5 u.
constexpr double cuda_exp_error = 2.6;

/// ex2.approx.ftz against 2^x, measured alike over every float in [-126, 16]: 2.4469.
constexpr double cuda_exp2_error = 2.5;

/// A problem that stays on the GPU, to be run again and again.
struct Placed {
  explicit Placed(const Problem& from)
      : problem(from), outputs(make_outputs(from)), tensors(cuda_device(), problem, outputs) {}
  Problem problem;
  Outputs outputs;
  DeviceTensors tensors;
};

/// The launches on a problem that stays on the GPU. Their workspace is allocated here, so that a graph can
/// hold them; a kernel that looks at values on the host allocates as it goes.
std::function<void(void*)> prepared_launch(const KernelLaunch& launch, const Problem& problem) {
  const auto placed = std::make_shared<Placed>(problem);
  const auto on = [](gpu::Device& device, void* stream) {
    gpu::LaunchContext context(device);
    context.stream = stream;
    context.wait = false;
    return context;
  };
  gpu::CallersWorkspace counting;
  try {
    gpu::LaunchContext context = on(counting, nullptr);
    context.dry = true;
    launch(placed->tensors, context);
  } catch (const gpu::DeviceError&) {
    return [=](void* stream) {
      gpu::LaunchContext context = on(cuda_device(), stream);
      launch(placed->tensors, context);
    };
  }
  const std::size_t bytes = counting.most_used_bytes();
  const auto workspace = std::make_shared<gpu::DeviceBuffer>(
      cuda_device(), static_cast<Index>(bytes / sizeof(float)), "workspace");
  return [=](void* stream) {
    gpu::CallersWorkspace memory(workspace->data(), bytes);
    gpu::LaunchContext context = on(memory, stream);
    launch(placed->tensors, context);
  };
}

/// A run on the GPU, for kernels of this architecture alone where it names one.
std::function<void(const Problem&, Outputs&)> on_gpu(const KernelLaunch& launch,
                                                     const std::string& architecture, Placement placement,
                                                     bool wait) {
  return [=](const Problem& problem, Outputs& outputs) {
    gpu::Device& device = cuda_device();
    if (const auto reason = gpu::declines_architecture(architecture, gpu::current_cuda_architecture()))
      throw NothingToJudge(*reason);
    run_on_device(device, {}, problem, outputs, launch, placement, wait);
  };
}

/// Sets `run` and `run_again` of a variant whose kernels `launch` starts.
void set_run(Variant& variant, const KernelLaunch& launch, const std::string& architecture) {
  const auto interpreted = [launch](simt::Schedule schedule) {
    return [launch, schedule](const Problem& problem, Outputs& outputs) {
      run_on_device(gpu::simt_device(), {schedule, 1, true}, problem, outputs, launch);
    };
  };
  if (variant.backend == "simt") {
    variant.run = interpreted(simt::Schedule::in_order);
    variant.run_again = {{interpreted(simt::Schedule::reversed), "the same run in reversed order"},
                         {interpreted(simt::Schedule::random), "the same run in random order"}};
  } else {
    // As other programs launch, so that a kernel may begin while the one in front ends (dependent_launch.h).
    // One that then reads too early finds something else in the second run.
    variant.run = on_gpu(launch, architecture, Placement::together, false);
    variant.run_again = {{on_gpu(launch, architecture, Placement::together, true),
                          "the same run with no launch overlapping another"}};
    variant.prepare = [launch](const Problem& problem) { return prepared_launch(launch, problem); };
  }
}

KernelLaunch launch_of(const gpu::RecurrenceKernel& kernel) {
  return [&kernel](const DeviceTensors& tensors, gpu::LaunchContext& context) {
    kernel.run(recurrence_arguments(tensors), context);
  };
}

Variant recurrence_variant(const gpu::RecurrenceKernel& kernel, const std::string& backend) {
  Variant variant;
  variant.operation = Operation::recurrence;
  variant.name = kernel.name;
  variant.backend = backend;
  variant.summary = kernel.summary;
  variant.claim = "recurrence." + (kernel.chunk > 0 ? std::string("chunked") : kernel.form);
  if (kernel.split_half) variant.claim = "recurrence.chunked_split_half";
  variant.arithmetic = {.form = kernel.form,
                        .chunk = kernel.chunk,
                        .tree_products = kernel.tree_products,
                        .operands = kernel.split_half ? Operands::split_half : Operands::float32};
  // A thread or warp computes a column by itself, step after step: neither other columns nor the end of the
  // sequence reach its bits. The state alone carries the past only where the form is the definition's.
  variant.promises = {.prefix = true, .split = kernel.form == "sequential", .columns = true};
  // Sums, products and quotients only, each rounded by itself on either side.
  variant.promises.interpreted = backend == "cuda";
  // Scales are taken from whole rows, and where the sequence is cut depends on its length.
  if (kernel.split_half) variant.promises = {};
  variant.declines = [&kernel](const Problem& problem) {
    // Sizes, strides and alignment are the same on the host, so the kernel can be asked before anything is
    // copied.
    Outputs outputs = make_outputs(problem);
    const RecurrenceProblem view = recurrence_view(problem);
    std::optional<std::string> reason =
        kernel.declines(gpu::recurrence_arguments(view, recurrence_view(outputs)));
    if (!reason && kernel.form == "prefix_product") reason = recurrence::prefix_product_declines(view);
    return reason;
  };
  set_run(variant, launch_of(kernel), kernel.architecture);
  return variant;
}

KernelLaunch launch_of(const gpu::AxialKernel& kernel) {
  return [&kernel](const DeviceTensors& tensors, gpu::LaunchContext& context) {
    kernel.run(axial_arguments(tensors), context);
  };
}

/// Packs the parameters once; what is left to run and to time is the launch.
std::function<void(void*)> launch_on_workspace(const gpu::AxialWorkspaceSteps& steps,
                                               const Problem& problem) {
  struct Prepared : Placed {
    Prepared(const gpu::AxialWorkspaceSteps& steps, const Problem& from)
        : Placed(from),
          arguments(axial_arguments(tensors)),
          workspace(cuda_device(), static_cast<Index>(steps.workspace_bytes(arguments) / sizeof(float)),
                    "workspace") {
      gpu::LaunchContext context(cuda_device());
      steps.prepare(arguments, workspace.data(), context);
    }
    gpu::AxialArguments arguments;
    gpu::DeviceBuffer workspace;
  };
  return [&steps, prepared = std::make_shared<Prepared>(steps, problem)](void* stream) {
    gpu::LaunchContext context(cuda_device());
    context.stream = stream;
    context.wait = false;
    steps.launch(prepared->arguments, prepared->workspace.data(), context);
  };
}

Variant axial_variant(const gpu::AxialKernel& kernel, const std::string& backend) {
  Variant variant;
  variant.operation = Operation::axial;
  variant.name = kernel.name;
  variant.backend = backend;
  variant.summary = kernel.summary;
  variant.claim = "axial.block";
  variant.arithmetic = {.form = kernel.form,
                        .exp_error = backend == "cuda" ? cuda_exp_error : host_exp_error};
  if (kernel.split_half) {
    variant.claim = "axial.split_half";
    variant.arithmetic.exp_error = cuda_exp2_error;
    variant.arithmetic.reciprocal_root = true;
    variant.arithmetic.operands = Operands::split_half;
  }
  variant.declines = [&kernel](const Problem& problem) {
    Outputs outputs = make_outputs(problem);
    return kernel.declines(gpu::axial_arguments(axial_view(problem), axial_view(outputs)));
  };
  set_run(variant, launch_of(kernel), kernel.architecture);
  if (backend == "cuda" && kernel.steps.launch)
    variant.prepare = [&kernel](const Problem& problem) {
      return launch_on_workspace(kernel.steps, problem);
    };
  return variant;
}

template <class Kernel>
const Kernel& kernel_named(const std::vector<Kernel>& kernels, const std::string& name) {
  for (const Kernel& kernel : kernels)
    if (kernel.name == name) return kernel;
  throw std::logic_error("no kernel is called '" + name + "'");
}

}  // namespace

KernelLaunch launch_of(const Variant& variant) {
  const bool recurrence = variant.operation == Operation::recurrence;
#ifdef GAUGEBLOCK_HAS_CUDA
  if (variant.backend == "cuda")
    return recurrence ? launch_of(kernel_named(gpu::cuda_backend::recurrence_kernels(), variant.name))
                      : launch_of(kernel_named(gpu::cuda_backend::axial_kernels(), variant.name));
#endif
  if (variant.backend != "simt") throw std::logic_error(variant.name + " has no kernel: " + variant.backend);
  return recurrence ? launch_of(kernel_named(gpu::simt_backend::recurrence_kernels(), variant.name))
                    : launch_of(kernel_named(gpu::simt_backend::axial_kernels(), variant.name));
}

RunAgain run_apart(const Variant& variant) {
  return {on_gpu(launch_of(variant), {}, Placement::apart, true), "the same run with each tensor by itself"};
}

#ifdef GAUGEBLOCK_HAS_CUDA
std::pair<std::string, std::string> choose_kernel_name(const Problem& problem) {
  Outputs outputs = make_outputs(problem);
  const std::string architecture = gpu::current_cuda_architecture();
  const auto named = [](const auto& choice) {
    return std::pair(choice.kernel == nullptr ? std::string() : choice.kernel->name, choice.reason);
  };
  if (problem.operation == Operation::recurrence)
    return named(gpu::choose_kernel(
        gpu::recurrence_arguments(recurrence_view(problem), recurrence_view(outputs)), architecture));
  return named(
      gpu::choose_kernel(gpu::axial_arguments(axial_view(problem), axial_view(outputs)), architecture));
}

std::vector<std::pair<std::string, std::string>> choice_rules(Operation operation) {
  std::vector<std::pair<std::string, std::string>> rules;
  if (operation == Operation::recurrence)
    for (const auto& rule : gpu::recurrence_rules()) rules.emplace_back(rule.kernel, rule.condition);
  else
    for (const auto& rule : gpu::axial_rules()) rules.emplace_back(rule.kernel, rule.condition);
  return rules;
}
#endif

std::vector<Variant> gpu_variants() {
  std::vector<Variant> variants;
  for (const gpu::RecurrenceKernel& kernel : gpu::simt_backend::recurrence_kernels())
    variants.push_back(recurrence_variant(kernel, "simt"));
  for (const gpu::AxialKernel& kernel : gpu::simt_backend::axial_kernels())
    variants.push_back(axial_variant(kernel, "simt"));
#ifdef GAUGEBLOCK_HAS_CUDA
  for (const gpu::RecurrenceKernel& kernel : gpu::cuda_backend::recurrence_kernels())
    variants.push_back(recurrence_variant(kernel, "cuda"));
  for (const gpu::AxialKernel& kernel : gpu::cuda_backend::axial_kernels())
    variants.push_back(axial_variant(kernel, "cuda"));
#endif
  return variants;
}

}  // namespace gaugeblock
