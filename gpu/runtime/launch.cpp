#include "gaugeblock/gpu/runtime/launch.h"

namespace gaugeblock::gpu {

void finish_interpreted(LaunchContext& context, simt::LaunchRecord record) {
  context.launches.push_back(std::move(record));
  const simt::LaunchRecord& done = context.launches.back();
  for (const simt::Report& report : done.reports)
    if (report.kind == simt::ReportKind::launch_refused)
      throw LaunchRefused("launch of " + done.kernel + " refused: " + report.message);
  if (done.completed) return;
  for (const simt::Report& report : done.reports)
    if (simt::is_fatal(report.kind)) throw DeviceError(report.text());
  throw DeviceError("launch of " + done.kernel + " did not complete");
}

}  // namespace gaugeblock::gpu
