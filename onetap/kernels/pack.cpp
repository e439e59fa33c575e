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

void copy_rows(const ConvShape& shape, const PackLayout::Copy& copy, const Span& span) {
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

// Takes the planes apart: of every part the rows that a copy of the tile needs.
void take_apart(const KernelSet& kernels, const PackLayout& layout, const float* planes, const PackTask& pack) {
  const ConvShape& shape = layout.shape();
  const int64_t width = layout.part_w();
  int64_t first = layout.part_h(), last = 0;
  for (const PackLayout::Copy& copy : layout.copies()) {
    const int64_t from = pack.first + copy.first, down = floor_div(copy.row, shape.stride_h);
    first = std::min(first, std::max<int64_t>(0, from / width + down));
    last = std::max(last, std::min(layout.part_h(), (from + pack.floats + copy.rows_down - 1) / width + down + 1));
  }
  TakeApart task;
  task.x = planes;
  task.x_plane = pack.x_plane;
  task.channels = pack.channels;
  task.height = shape.in_h;
  task.width = shape.in_w;
  task.stride_h = shape.stride_h;
  task.stride_w = shape.stride_w;
  task.part_h = layout.part_h();
  task.part_w = width;
  task.first_row = first;
  task.last_row = last;
  task.wanted = layout.wanted_parts();
  task.parts = pack.parts;
  kernels.take_apart(task);
}

}  // namespace

void pack_tile(const KernelSet& kernels, const PackLayout& layout, const PackTask& task) {
  const ConvShape& shape = layout.shape();
  const int64_t width = layout.part_w(), part = layout.part_h() * width;
  const float* planes = task.x + task.first_channel * task.x_plane;
  if (!layout.is_shifted()) {
    for (int64_t c = 0; c < task.channels; ++c) {
      for (const PackLayout::Copy& copy : layout.copies()) {
        copy_rows(shape, copy,
                  {planes + c * task.x_plane, task.first + copy.first, task.floats + copy.rows_down,
                   task.pack + c * layout.channel_floats() + copy.start});
      }
    }
    return;
  }
  ShiftedPack pack;
  pack.channels = task.channels;
  pack.pack = task.pack;
  pack.channel_floats = layout.channel_floats();
  if (layout.parts() == 1) {
    pack.x = planes;
    pack.x_plane = task.x_plane;
    pack.before = task.first_channel * task.x_plane;
    pack.after = (shape.in - 1 - task.first_channel) * task.x_plane + part;
  } else {
    take_apart(kernels, layout, planes, task);
    pack.x = task.parts;
    pack.x_plane = layout.parts() * part;
    pack.after = task.channels * pack.x_plane;
  }
  std::array<ShiftedCopy, kCopiesAtOnce> copies;
  pack.copies = copies.data();
  for (const PackLayout::Copy& copy : layout.copies()) {
    const int64_t right = floor_div(copy.column, shape.stride_w), down = floor_div(copy.row, shape.stride_h);
    const int64_t plane = floor_mod(copy.row, shape.stride_h) * shape.stride_w + floor_mod(copy.column, shape.stride_w);
    const int64_t from = task.first + copy.first, end = from + round_up(task.floats + copy.rows_down, kernels.lanes);
    const bool inside = right == 0 && from / width + down >= 0 && (end - 1) / width + down < layout.part_h();
    copies[static_cast<size_t>(pack.copy_count++)] = {plane * part + from + down * width + right, end - from,
                                                      inside ? nullptr : layout.border_masks() + copy.mask + from,
                                                      copy.start};
    if (pack.copy_count == static_cast<int64_t>(kCopiesAtOnce) || &copy == &layout.copies().back()) {
      kernels.pack_shifted(pack);
      pack.copy_count = 0;
    }
  }
}

}  // namespace onetap
