// How the inputs of a convolution lie in scratch while they are used: as copies of each plane, one per kernel column
// (and per kernel row modulo the stride), shifted and bordered with zeros, so that a position of the kernel is one
// distance for all pixels of the output. A stride first takes the plane apart into planes of every stride-th pixel.
#pragma once

#include "onetap/kernels/aligned.h"
#include "onetap/kernels/conv_shape.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace onetap {

class PackLayout {
 public:
  // One shifted image of an input plane.
  struct Copy {
    int64_t column = 0;     // of the kernel, times dilation, less padding: the shift to the right, in input pixels
    int64_t row = 0;        // likewise, of the tap whose offset is 0 rows
    int64_t first = 0;      // output pixel (relative to the tile's first) that the copy begins with
    int64_t start = 0;      // floats from the channel's pack to this copy
    int64_t rows_down = 0;  // what the copy holds beyond the tile, in floats
    int64_t mask = 0;       // floats into border_masks(), to be indexed by output pixel
  };

  // For tiles of `tile` pixels, whole vectors of `lanes`; `used`: positions of the kernel that are read. `aligned`: the
  // place of each is a whole number of vectors, for which it takes more copies where rows are none.
  PackLayout(const ConvShape& shape, const std::vector<bool>& used, int64_t tile, int64_t lanes, bool aligned);

  const ConvShape& shape() const { return shape_; }
  const std::vector<Copy>& copies() const { return copies_; }
  int64_t channel_floats() const { return channel_floats_; }  // of the pack
  // Floats into a channel's pack, by kernel position that is used.
  int64_t place(int64_t position) const { return places_[static_cast<size_t>(position)]; }

  // Every stride-th pixel of every stride-th row of an input plane; with stride 1 the plane itself.
  int64_t part_h() const { return (shape_.in_h + shape_.stride_h - 1) / shape_.stride_h; }
  int64_t part_w() const { return (shape_.in_w + shape_.stride_w - 1) / shape_.stride_w; }
  int64_t parts() const { return shape_.stride_h * shape_.stride_w; }
  // Where such rows are as long as those of the output, a copy is one part of the plane, shifted: what the shift
  // carries from one row into the next, or from beyond the plane, is cleared by a mask.
  bool is_shifted() const { return part_w() == shape_.out_w(); }
  const float* border_masks() const { return masks_.get(); }
  const bool* wanted_parts() const { return wanted_parts_.get(); }
  // Scratch that taking so many planes apart needs.
  int64_t parts_floats(int64_t channels) const {
    return is_shifted() && parts() > 1 ? round_up(channels * parts() * part_h() * part_w(), kLineFloats) : 0;
  }

 private:
  void lay_out(const std::vector<bool>& used, int64_t tile, int64_t lanes, bool aligned);
  void draw_masks(int64_t tile, int64_t lanes);

  ConvShape shape_;
  std::vector<Copy> copies_;
  std::vector<int64_t> places_;
  AlignedArray<float> masks_;
  std::unique_ptr<bool[]> wanted_parts_;
  int64_t channel_floats_ = 0;
};

// The most that the masks of a layout take, in bytes.
int64_t pack_layout_bytes(const ConvShape& shape, int64_t tile);

}  // namespace onetap
