#include "onetap/kernels/plane_plan.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/kernel_set.h"

#include <algorithm>
#include <limits>

namespace onetap {
namespace {

// Padded planes at a time: as many as leave the first cache room for what they are made from and for the result.
constexpr int64_t kScratchFloats = 4096;

// A pack has a copy per kernel column, but no vector of it is half empty: that pays where rows are short, and all of
// the kernel is read.
bool packs(const ConvShape& shape, bool dense, int64_t lanes) {
  const bool is_shifted = (shape.in_w + shape.stride_w - 1) / shape.stride_w == shape.out_w();
  return is_shifted && shape.stride_h == 1 && shape.stride_w == 1 && 2 * shape.out_w() <= lanes &&
         (dense || shape.taps == 0);
}

// Pixels of the output that are packed at a time: whole vectors.
int64_t packed_tile(const ConvShape& shape, int64_t lanes) {
  constexpr int64_t kLeastVectors = 16;
  const int64_t copies = shape.kernel_w * std::min(shape.stride_h, shape.kernel_h);
  const int64_t halo = (shape.kernel_h - 1) * shape.dilation_h / shape.stride_h * shape.out_w();
  const int64_t fit = std::max(kLeastVectors, (kScratchFloats / copies - halo) / lanes) * lanes;
  return std::min(fit, round_up(shape.out_h() * shape.out_w(), lanes));
}

int64_t groups_that_fit(const PlaneShape& shape, int64_t plane_floats) {
  const int64_t group = shape.in_per_group() * plane_floats;
  if (group > std::numeric_limits<int32_t>::max()) {
    fail_usage("[kernels] copies of {} planes of {}x{} in {} floats are beyond what a group can hold",
               shape.in_per_group(), shape.in_h, shape.in_w, group);
  }
  return std::clamp<int64_t>(kScratchFloats / group, 1, shape.groups);
}

}  // namespace

PlaneShape plane_shape(const ConvShape& shape) {
  return {shape.in,      shape.in_h,     shape.in_w,     shape.out,   shape.out_h(),
          shape.out_w(), shape.stride_h, shape.stride_w, shape.groups};
}

PlaneTaps conv_taps(const ConvShape& shape, const ConvWeights& weights, bool dense) {
  const TapLayout layout = shape.layout();
  const int64_t in = shape.in_per_group(), given = shape.taps_per_slice();
  PlaneTaps taps;
  const auto add = [&](int64_t channel, int64_t position, float weight) {
    const int64_t down = position / shape.kernel_w * shape.dilation_h - shape.padding_h;
    const int64_t right = position % shape.kernel_w * shape.dilation_w - shape.padding_w;
    if (!reaches(down, shape.stride_h, shape.out_h(), shape.in_h)) return;
    if (!reaches(right, shape.stride_w, shape.out_w(), shape.in_w)) return;
    taps.taps.push_back(
        {static_cast<int32_t>(channel), static_cast<int32_t>(down), static_cast<int32_t>(right), weight});
  };
  for (int64_t d = 0; d < shape.out; ++d) {
    for (int64_t c = 0; c < in; ++c) {
      const float* slice = weights.weight + (d * in + c) * given;
      const uint16_t* codes = shape.taps > 0 ? weights.positions + layout.first_code(d, c) : nullptr;
      if (shape.taps == 0) {
        for (int64_t position = 0; position < given; ++position) add(c, position, slice[position]);
      } else if (!dense) {
        for (int64_t i = 0; i < given; ++i) {
          if (codes[i] != layout.none()) add(c, codes[i], slice[i]);
        }
      } else {
        for (int64_t position = 0; position < shape.area(); ++position) {
          const uint16_t* found = std::find(codes, codes + given, static_cast<uint16_t>(position));
          add(c, position, found == codes + given ? 0.0f : slice[found - codes]);
        }
      }
    }
    taps.end_result();
  }
  return taps;
}

PlanePlan::PlanePlan(const PlaneShape& shape, const PlaneTaps& taps, const float* bias, const KernelSet& kernels)
    : shape_(shape) {
  pad(taps, kernels.lanes);
  place_taps(nullptr, taps, bias);
}

PlanePlan::PlanePlan(const ConvShape& shape, const ConvWeights& weights, bool dense, const KernelSet& kernels)
    : shape_(plane_shape(shape)) {
  const PlaneTaps taps = conv_taps(shape, weights, dense);
  if (packs(shape, dense, kernels.lanes)) {
    pack(shape, kernels.lanes);
    place_taps(&shape, taps, weights.bias);
  } else {
    pad(taps, kernels.lanes);
    place_taps(nullptr, taps, weights.bias);
    const bool is_window = shape.kernel_h == 3 && shape.kernel_w == 3 && shape.dilation_h == 1 && shape.stride_h == 1;
    // Unless some lie outside, and were left out.
    has_windows_ = is_window && shape.in_per_group() == 1 && static_cast<int64_t>(taps.taps.size()) == 9 * shape.out;
  }
}

void PlanePlan::pad(const PlaneTaps& taps, int64_t lanes) {
  int64_t below = 0, right = 0;
  for (const PlaneTap& tap : taps.taps) {
    padded_.above = std::max<int64_t>(padded_.above, -tap.down);
    padded_.left = std::max<int64_t>(padded_.left, -tap.right);
    below = std::max<int64_t>(below, tap.down);
    right = std::max<int64_t>(right, tap.right);
  }
  const int64_t step = shape_.stride_w;
  padded_.rows = (shape_.out_h - 1) * shape_.stride_h + padded_.above + below + 1;
  padded_.pitch =
      std::max(shape_.out_w + (padded_.left + right) / step, (shape_.in_w + padded_.left + step - 1) / step);
  // A vector may begin at the last pixel.
  padded_.part = round_up(padded_.rows * padded_.pitch + lanes, kLineFloats);
  padded_.floats = step * padded_.part;
  // Planes a multiple of 4 KiB apart would fight for the same cache sets.
  if (padded_.floats % 1024 == 0) padded_.floats += kLineFloats;
  tile_ = shape_.pixels();
  groups_at_once_ = groups_that_fit(shape_, padded_.floats);
  cut_rows(lanes);
}

// Row by row: whole vectors, and one that ends with the row. Where a row is shorter than a vector, what lies behind it
// is written too, and then overwritten by the next row.
void PlanePlan::cut_rows(int64_t lanes) {
  const int64_t width = shape_.out_w, room = round_up(shape_.pixels(), lanes);
  for (int64_t row = 0; row < shape_.out_h; ++row) {
    for (int64_t column = 0; column < width; column += lanes) {
      const int64_t first = std::max<int64_t>(0, std::min(column, width - lanes));
      units_.push_back({row * shape_.stride_h * padded_.pitch + first, row * width + first});
      if (units_.back().to + lanes <= room) ++whole_units_;
    }
  }
}

void PlanePlan::pack(const ConvShape& shape, int64_t lanes) {
  tile_ = packed_tile(shape, lanes);
  layout_.emplace(shape, std::vector<bool>(static_cast<size_t>(shape.area()), true), tile_, lanes, false);
  groups_at_once_ = groups_that_fit(shape_, layout_->channel_floats());
  for (int64_t pixel = 0; pixel < tile_; pixel += lanes) units_.push_back({pixel, pixel});
  whole_units_ = static_cast<int64_t>(units_.size());
}

// `packed`: the convolution, if it is.
void PlanePlan::place_taps(const ConvShape* packed, const PlaneTaps& taps, const float* bias) {
  const int64_t step = shape_.stride_w;
  for (const PlaneTap& tap : taps.taps) {
    int64_t place = 0;
    if (packed != nullptr) {
      const int64_t row = (tap.down + packed->padding_h) / packed->dilation_h;
      const int64_t column = (tap.right + packed->padding_w) / packed->dilation_w;
      place = layout_->place(row * packed->kernel_w + column);
    } else {
      const int64_t column = tap.right + padded_.left;
      place = column % step * padded_.part + (tap.down + padded_.above) * padded_.pitch + column / step;
    }
    offsets_.push_back(static_cast<int32_t>(tap.plane * plane_floats() + place));
    weights_.push_back(tap.weight);
  }
  from_ = taps.from;
  if (bias != nullptr) {
    bias_.assign(bias, bias + shape_.out);
  } else {
    bias_.assign(static_cast<size_t>(shape_.out), 0.0f);
  }
}

int64_t plane_plan_bytes(const PlaneShape& shape, int64_t taps, const KernelSet& kernels) {
  const int64_t units = shape.out_h * ((shape.out_w + kernels.lanes - 1) / kernels.lanes);
  return taps * static_cast<int64_t>(sizeof(PlaneTap) + sizeof(int32_t) + sizeof(float)) +
         units * static_cast<int64_t>(sizeof(PlaneUnit)) +
         shape.out * static_cast<int64_t>(2 * sizeof(int64_t) + sizeof(float));
}

int64_t plane_plan_bytes(const ConvShape& shape, bool dense, const KernelSet& kernels) {
  const int64_t taps = shape.out * shape.in_per_group() * (dense ? shape.area() : shape.taps_per_slice());
  const int64_t masks =
      packs(shape, dense, kernels.lanes) ? pack_layout_bytes(shape, packed_tile(shape, kernels.lanes)) : 0;
  return plane_plan_bytes(plane_shape(shape), taps, kernels) + masks;
}

}  // namespace onetap
