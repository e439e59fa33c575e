#include "onetap/kernels/planes.h"

#include "onetap/kernels/pack.h"

#include <algorithm>

namespace onetap {
namespace {

// Copies of the planes of groups [first, first + groups), for the tile that begins at `pixel`.
void make_copies(const KernelSet& kernels, const PlanePlan& plan, const ConvIo& io, int64_t first, int64_t groups,
                 int64_t pixel, float* scratch) {
  const PlaneShape& shape = plan.shape();
  const int64_t channel = first * shape.in_per_group(), channels = groups * shape.in_per_group();
  if (plan.is_packed()) {
    const int64_t floats = std::min(plan.tile(), round_up(shape.pixels() - pixel, kernels.lanes));
    pack_tile(kernels, plan.layout(),
              {io.x, io.x_plane, channel, channels, pixel, floats, scratch, scratch + plan.parts_floats()});
    return;
  }
  const PaddedPlane& padded = plan.padded();
  PadPlanes task;
  task.x = io.x + channel * io.x_plane;
  task.x_plane = io.x_plane;
  task.after = (shape.in - 1 - channel) * io.x_plane + shape.in_h * shape.in_w;
  task.channels = channels;
  task.rows = std::min(shape.in_h, padded.rows - padded.above);
  task.width = shape.in_w;
  task.stride_w = shape.stride_w;
  task.left = padded.left;
  task.pitch = padded.pitch;
  task.part = padded.part;
  task.to_plane = padded.floats;
  task.to = scratch + padded.above * padded.pitch;
  kernels.pad_planes(task);
}

}  // namespace

void run_planes(const KernelSet& kernels, const PlanePlan& plan, const ConvIo& io, float* scratch, int64_t part,
                int64_t parts) {
  const PlaneShape& shape = plan.shape();
  const int64_t first = shape.groups * part / parts, last = shape.groups * (part + 1) / parts;
  const int64_t out = shape.out_per_group(), group_floats = shape.in_per_group() * plan.plane_floats();
  const int64_t at_once = std::min(plan.groups_at_once(), last - first);
  // The zeros around padded planes stay.
  if (!plan.is_packed()) std::fill_n(scratch, at_once * group_floats, 0.0f);
  PlaneSums sums;
  sums.group_floats = group_floats;
  sums.results = out;
  sums.units = plan.units().data();
  sums.offsets = plan.offsets();
  sums.weights = plan.weights();
  sums.y_plane = io.y_plane;
  sums.residual_plane = io.residual_plane;
  sums.relu = io.relu;
  if (plan.has_windows()) {
    sums.window_rows = shape.out_h;
    sums.row_floats = plan.padded().pitch;
    sums.units_per_row = static_cast<int64_t>(plan.units().size()) / shape.out_h;
  }
  for (int64_t group = first; group < last; group += at_once) {
    const int64_t groups = std::min(at_once, last - group);
    for (int64_t pixel = 0; pixel < shape.pixels(); pixel += plan.tile()) {
      make_copies(kernels, plan, io, group, groups, pixel, scratch);
      sums.pixels = std::min(plan.tile(), shape.pixels() - pixel);
      // A packed tile ends with a whole vector.
      const int64_t units = plan.is_packed() ? (sums.pixels + kernels.lanes - 1) / kernels.lanes
                                             : static_cast<int64_t>(plan.units().size());
      sums.unit_count = units;
      sums.whole_units = plan.is_packed() ? units : plan.whole_units();
      sums.groups = groups;
      sums.x = scratch + plan.parts_floats();
      sums.from = plan.from() + group * out;
      sums.bias = plan.bias() + group * out;
      sums.y = io.y + group * out * io.y_plane + pixel;
      if (io.residual != nullptr) sums.residual = io.residual + group * out * io.residual_plane + pixel;
      kernels.plane_sums(sums);
    }
  }
}

}  // namespace onetap
