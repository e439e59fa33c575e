#include "onetap/kernels/pack.h"

#include <algorithm>
#include <array>

namespace onetap {
namespace {

// Handed to the kernel at a time; a kernel of 7x7 has as many at most.
constexpr size_t kCopiesAtOnce = 49;

// Where one copy of one plane comes from and goes to: output pixels from..from+count-1.
struct Span {
  const float* plane;
  int64_t from, count;
  float* to;
};

void copy_rows(const ConvShape& shape, const ConvPlan::Copy& copy, const Span& span) {
  const int64_t width = shape.out_w(), step = shape.stride_w;
  // Columns whose input lies inside the row.
  const int64_t low = copy.column >= 0 ? 0 : (-copy.column + step - 1) / step;
  const int64_t high = shape.in_w - 1 - copy.column < 0 ? 0 : (shape.in_w - 1 - copy.column) / step + 1;
  float* to = span.to;
  for (int64_t pixel = span.from; pixel < span.from + span.count;) {
    const int64_t x = pixel % width, y = pixel / width * shape.stride_h + copy.row;
    const int64_t count = std::min(width - x, span.from + span.count - pixel);
    const bool inside = y >= 0 && y < shape.in_h;
    const int64_t begin = inside ? std::clamp<int64_t>(low - x, 0, count) : count;
    const int64_t end = inside ? std::clamp<int64_t>(high - x, begin, count) : count;
    for (int64_t i = 0; i < begin; ++i) to[i] = 0;
    const float* from = span.plane + y * shape.in_w + x * step + copy.column;
    if (step == 1) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i];
    } else if (step == 2) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i * 2];
    } else {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i * step];
    }
    for (int64_t i = end; i < count; ++i) to[i] = 0;
    to += count;
    pixel += count;
  }
}

// Takes the planes of a block apart: of every part the rows that a copy of the tile needs.
void take_apart(const KernelSet& kernels, const ConvPlan& plan, const float* x, int64_t x_plane, int64_t channels,
                int64_t first_pixel, int64_t pixels, float* parts) {
  const ConvShape& shape = plan.shape();
  const int64_t width = plan.part_w();
  int64_t first = plan.part_h(), last = 0;
  for (const ConvPlan::Copy& copy : plan.copies()) {
    const int64_t from = first_pixel + copy.first, down = floor_div(copy.row, shape.stride_h);
    first = std::min(first, std::max<int64_t>(0, from / width + down));
    last = std::max(last, std::min(plan.part_h(), (from + pixels + copy.rows_down - 1) / width + down + 1));
  }
  TakeApart task;
  task.x = x;
  task.x_plane = x_plane;
  task.channels = channels;
  task.height = shape.in_h;
  task.width = shape.in_w;
  task.stride_h = shape.stride_h;
  task.stride_w = shape.stride_w;
  task.part_h = plan.part_h();
  task.part_w = width;
  task.first_row = first;
  task.last_row = last;
  task.wanted = plan.wanted_parts();
  task.parts = parts;
  kernels.take_apart(task);
}

}  // namespace

void pack_tile(const KernelSet& kernels, const ConvPlan& plan, const float* x, int64_t x_plane,
               const ConvPlan::Block& block, int64_t first, int64_t vectors, float* scratch) {
  const ConvShape& shape = plan.shape();
  const int64_t floats = vectors * plan.lanes(), width = plan.part_w(), part = plan.part_h() * width;
  float* pack = scratch + plan.parts_floats();
  if (!plan.is_shifted()) {
    for (int64_t c = 0; c < block.channels; ++c) {
      for (const ConvPlan::Copy& copy : plan.copies()) {
        copy_rows(shape, copy,
                  {x + (block.first_channel + c) * x_plane, first + copy.first, floats + copy.rows_down,
                   pack + c * plan.channel_floats() + copy.start});
      }
    }
    return;
  }
  ShiftedPack task;
  task.channels = block.channels;
  task.pack = pack;
  task.channel_floats = plan.channel_floats();
  if (plan.parts() == 1) {
    task.x = x + block.first_channel * x_plane;
    task.x_plane = x_plane;
    task.before = block.first_channel * x_plane;
    task.after = (shape.in - 1 - block.first_channel) * x_plane + part;
  } else {
    take_apart(kernels, plan, x + block.first_channel * x_plane, x_plane, block.channels, first, floats, scratch);
    task.x = scratch;
    task.x_plane = plan.parts() * part;
    task.after = block.channels * task.x_plane;
  }
  std::array<ShiftedCopy, kCopiesAtOnce> copies;
  task.copies = copies.data();
  for (const ConvPlan::Copy& copy : plan.copies()) {
    const int64_t right = floor_div(copy.column, shape.stride_w), down = floor_div(copy.row, shape.stride_h);
    const int64_t plane = floor_mod(copy.row, shape.stride_h) * shape.stride_w + floor_mod(copy.column, shape.stride_w);
    const int64_t from = first + copy.first, end = from + floats + copy.rows_down;
    const bool inside = right == 0 && from / width + down >= 0 && (end - 1) / width + down < plan.part_h();
    copies[static_cast<size_t>(task.copy_count++)] = {plane * part + from + down * width + right, end - from,
                                                      inside ? nullptr : plan.border_masks() + copy.mask + from,
                                                      copy.start};
    if (task.copy_count == static_cast<int64_t>(kCopiesAtOnce) || &copy == &plan.copies().back()) {
      kernels.pack_shifted(task);
      task.copy_count = 0;
    }
  }
}

}  // namespace onetap
