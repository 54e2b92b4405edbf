#include "gaugeblock/verify/variants/recurrence_gpu.h"

#include "gaugeblock/gpu/recurrence/kernels.h"
#include "gaugeblock/reference/recurrence/prefix_range.h"
#include "gaugeblock/verify/variants/device_run.h"

namespace gaugeblock {
namespace {

gpu::RecurrenceArguments arguments_of(const DeviceTensors& tensors) {
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

std::optional<std::string> declines(const gpu::RecurrenceKernel& kernel, const Problem& problem) {
  // Sizes, strides and alignment are the same on the host, so the kernel can be asked before anything is copied.
  Outputs outputs = make_outputs(problem);
  const RecurrenceProblem view = recurrence_view(problem);
  if (const std::optional<std::string> reason =
          kernel.declines(gpu::recurrence_arguments(view, recurrence_view(outputs))))
    return reason;
  return kernel.form == "prefix_product" ? recurrence::prefix_product_declines(view) : std::nullopt;
}

Variant gpu_variant(const gpu::RecurrenceKernel& kernel, const std::string& backend) {
  Variant variant;
  variant.operation = Operation::recurrence;
  variant.name = kernel.name;
  variant.backend = backend;
  variant.summary = kernel.summary;
  variant.claim = "recurrence." + kernel.form;
  variant.arithmetic = {.form = kernel.form, .chunk = kernel.chunk};
  variant.declines = [&kernel](const Problem& problem) { return declines(kernel, problem); };
  const auto run_with = [&kernel](gpu::Device& device, const simt::Options& options, const Problem& problem,
                                  Outputs& outputs) {
    run_on_device(device, options, problem, outputs, [&kernel](const DeviceTensors& tensors, gpu::LaunchContext& context) {
      kernel.run(arguments_of(tensors), context);
    });
  };
  if (backend == "simt") {
    // The three schedules: threads in order at first, then every other way must give the same bits.
    variant.run = [run_with](const Problem& problem, Outputs& outputs) {
      run_with(gpu::simt_device(), {simt::Schedule::in_order, 0, true}, problem, outputs);
    };
    variant.run_again = {[run_with](const Problem& problem, Outputs& outputs) {
                           run_with(gpu::simt_device(), {simt::Schedule::reversed, 0, true}, problem, outputs);
                         },
                         [run_with](const Problem& problem, Outputs& outputs) {
                           run_with(gpu::simt_device(), {simt::Schedule::random, 1, true}, problem, outputs);
                         }};
  } else {
    variant.run = [run_with](const Problem& problem, Outputs& outputs) {
      run_with(cuda_device(), {}, problem, outputs);
    };
  }
  return variant;
}

}  // namespace

std::vector<Variant> recurrence_gpu_variants() {
  std::vector<Variant> variants;
  for (const gpu::RecurrenceKernel& kernel : gpu::simt_backend::recurrence_kernels())
    variants.push_back(gpu_variant(kernel, "simt"));
#ifdef GAUGEBLOCK_HAS_CUDA
  for (const gpu::RecurrenceKernel& kernel : gpu::cuda_backend::recurrence_kernels())
    variants.push_back(gpu_variant(kernel, "cuda"));
#endif
  return variants;
}

}  // namespace gaugeblock
