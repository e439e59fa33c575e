// Layers whose results are sums of few planes, made ready for the fast kernels: depthwise convolutions, dense or with
// taps, shifts and active shifts.
//
// Some planes of x at a time are copied into scratch, so that a tap is one distance for all pixels. A vector of pixels
// of the result then is a sum of vectors at those distances, a weight each. There are two kinds of copies:
// - packed, as a PackLayout has them: rows without gaps, one copy per kernel column. For dense kernels.
// - padded: one copy with zeros around it; with a stride, every stride-th column lies together. For layers that read
//   each plane at few places, and for rows that a PackLayout cannot shift.
// Unlike a ConvPlan's, places are not aligned: to make copies for that costs more than it saves where each is read but
// a few times.
#pragma once

#include "onetap/base/plane_taps.h"
#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/pack_layout.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace onetap {

struct KernelSet;

// Planes in, planes out, in groups: a plane of the result is made from those of x in its group.
struct PlaneShape {
  int64_t in = 1, in_h = 1, in_w = 1;
  int64_t out = 1, out_h = 1, out_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t groups = 1;

  int64_t pixels() const { return out_h * out_w; }
  int64_t in_per_group() const { return in / groups; }
  int64_t out_per_group() const { return out / groups; }
};
PlaneShape plane_shape(const ConvShape& shape);

// A convolution as taps. Those that lie outside wherever they are read are left out. `dense`: every position of the
// kernel, with zeros for what was pruned.
PlaneTaps conv_taps(const ConvShape& shape, const ConvWeights& weights, bool dense = false);

// A vector of pixels: where it begins in the copies and in the plane of the result (or its tile).
struct PlaneUnit {
  int64_t from = 0, to = 0;
};

// One copy of a plane with zeros around it.
struct PaddedPlane {
  int64_t left = 0;    // columns of zeros before a row
  int64_t above = 0;   // rows of zeros above the plane
  int64_t rows = 0;    // with those
  int64_t pitch = 0;   // floats from one row to the next
  int64_t part = 0;    // floats of every stride-th column
  int64_t floats = 0;  // in all
};

class PlanePlan {
 public:
  // Padded. bias [out], null for none. kUsage if the planes of a group are too large to be numbered in 32 bits.
  PlanePlan(const PlaneShape& shape, const PlaneTaps& taps, const float* bias, const KernelSet& kernels);
  // A convolution: packed, or padded where that is better. `dense` as in conv_taps().
  PlanePlan(const ConvShape& shape, const ConvWeights& weights, bool dense, const KernelSet& kernels);

  const PlaneShape& shape() const { return shape_; }
  bool is_packed() const { return layout_.has_value(); }
  const PackLayout& layout() const { return *layout_; }
  const PaddedPlane& padded() const { return padded_; }
  int64_t plane_floats() const { return is_packed() ? layout_->channel_floats() : padded_.floats; }
  int64_t planes_at_once() const { return groups_at_once_ * shape_.in_per_group(); }
  int64_t groups_at_once() const { return groups_at_once_; }
  // Pixels of the result at a time: all of a plane that is padded.
  int64_t tile() const { return tile_; }
  int64_t scratch_floats() const { return parts_floats() + planes_at_once() * plane_floats(); }
  int64_t parts_floats() const { return is_packed() ? layout_->parts_floats(planes_at_once()) : 0; }

  const std::vector<PlaneUnit>& units() const { return units_; }  // of a tile
  // Units of which all pixels may be written; those behind them end with the plane.
  int64_t whole_units() const { return whole_units_; }
  // Whether each result has 3x3 taps, rows and columns of x apart, on a padded plane that is not strided down.
  bool has_windows() const { return has_windows_; }
  const int64_t* from() const { return from_.data(); }  // taps of result d: [from()[d], from()[d + 1])
  const int32_t* offsets() const { return offsets_.data(); }
  const float* weights() const { return weights_.data(); }
  const float* bias() const { return bias_.data(); }

  // Multiply-adds for one image.
  int64_t macs() const { return static_cast<int64_t>(weights_.size()) * shape_.pixels(); }
  int64_t weight_bytes() const { return static_cast<int64_t>(weights_.size()) * 8 + shape_.out * 4; }

 private:
  void pad(const PlaneTaps& taps, int64_t lanes);
  void cut_rows(int64_t lanes);
  void pack(const ConvShape& shape, int64_t lanes);
  void place_taps(const ConvShape* packed, const PlaneTaps& taps, const float* bias);

  PlaneShape shape_;
  std::optional<PackLayout> layout_;
  PaddedPlane padded_;
  int64_t groups_at_once_ = 1, tile_ = 0;
  std::vector<PlaneUnit> units_;
  int64_t whole_units_ = 0;
  bool has_windows_ = false;
  std::vector<int64_t> from_;
  std::vector<int32_t> offsets_;  // of a tap from its unit's place
  std::vector<float> weights_;
  std::vector<float> bias_;
};

// The most that a PlanePlan of so many taps takes, the taps it is made from included; and that of a convolution.
int64_t plane_plan_bytes(const PlaneShape& shape, int64_t taps, const KernelSet& kernels);
int64_t plane_plan_bytes(const ConvShape& shape, bool dense, const KernelSet& kernels);

}  // namespace onetap
