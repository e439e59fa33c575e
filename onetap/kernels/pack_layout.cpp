#include "onetap/kernels/pack_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onetap {

PackLayout::PackLayout(const ConvShape& shape, const std::vector<bool>& used, int64_t tile, int64_t lanes, bool aligned)
    : shape_(shape) {
  lay_out(used, tile, lanes, aligned);
  if (is_shifted()) draw_masks(tile, lanes);
}

// Kernel row k * dilation = down * stride + rest: taps whose rest is equal see the same rows, `down` output rows apart.
// A copy is stored so that those rows begin a vector; where `down` rows are no whole number of vectors, it takes one
// copy per remainder.
void PackLayout::lay_out(const std::vector<bool>& used, int64_t tile, int64_t lanes, bool aligned) {
  const int64_t width = shape_.out_w();
  struct Key {
    int64_t column, row, phase;
    bool operator==(const Key& o) const { return column == o.column && row == o.row && phase == o.phase; }
  };
  std::vector<Key> keys;
  std::vector<int64_t> first, last;  // floats of each copy, relative to the tile's first pixel less the phase
  std::vector<size_t> copy_of(used.size());
  std::vector<int64_t> begin_of(used.size());
  for (size_t k = 0; k < used.size(); ++k) {
    if (!used[k]) continue;
    const auto position = static_cast<int64_t>(k);
    const int64_t row = position / shape_.kernel_w * shape_.dilation_h;
    const int64_t down = row / shape_.stride_h * width;
    const Key key{position % shape_.kernel_w * shape_.dilation_w - shape_.padding_w,
                  row % shape_.stride_h - shape_.padding_h, aligned ? down % lanes : 0};
    const auto found = std::find(keys.begin(), keys.end(), key);
    const auto index = static_cast<size_t>(found - keys.begin());
    begin_of[k] = down - key.phase;
    copy_of[k] = index;
    if (found == keys.end()) {
      keys.push_back(key);
      first.push_back(begin_of[k]);
      last.push_back(begin_of[k]);
    }
    first[index] = std::min(first[index], begin_of[k]);
    last[index] = std::max(last[index], begin_of[k]);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    copies_.push_back({keys[i].column, keys[i].row, first[i] + keys[i].phase, channel_floats_, last[i] - first[i], 0});
    channel_floats_ += round_up(tile + last[i] - first[i], lanes);
  }
  // Channels a multiple of 4 KiB apart would fight for the same cache sets.
  if (channel_floats_ % 1024 == 0) channel_floats_ += lanes;
  places_.assign(used.size(), 0);
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) places_[k] = copies_[copy_of[k]].start + begin_of[k] - first[copy_of[k]];
  }
}

// One mask per shift, as long as any copy of any tile reaches: all bits where the shifted pixel is of the same row and
// inside the plane.
void PackLayout::draw_masks(int64_t tile, int64_t lanes) {
  wanted_parts_ = std::make_unique<bool[]>(static_cast<size_t>(parts()));
  for (const Copy& copy : copies_) {
    const int64_t part =
        floor_mod(copy.row, shape_.stride_h) * shape_.stride_w + floor_mod(copy.column, shape_.stride_w);
    wanted_parts_[static_cast<size_t>(part)] = true;
  }
  const int64_t width = shape_.out_w();
  int64_t length = 0;
  for (const Copy& copy : copies_) length = std::max(length, copy.first + copy.rows_down);
  length = round_up(length + round_up(shape_.out_h() * width, tile) + lanes, kLineFloats);
  std::vector<std::pair<int64_t, int64_t>> shifts;
  for (Copy& copy : copies_) {
    const std::pair shift(floor_div(copy.column, shape_.stride_w), floor_div(copy.row, shape_.stride_h));
    const auto found = std::find(shifts.begin(), shifts.end(), shift);
    copy.mask = (found - shifts.begin()) * length;
    if (found == shifts.end()) shifts.push_back(shift);
  }
  masks_ = aligned_array<float>(static_cast<int64_t>(shifts.size()) * length);
  float* to = masks_.get();
  for (const auto& [right, down] : shifts) {
    for (int64_t pixel = 0; pixel < length; ++pixel) {
      const int64_t x = pixel % width + right, y = pixel / width + down;
      const uint32_t bits = x >= 0 && x < width && y >= 0 && y < part_h() ? 0xFFFFFFFFu : 0u;
      std::memcpy(to++, &bits, sizeof bits);
    }
  }
}

int64_t pack_layout_bytes(const ConvShape& shape, int64_t tile) {
  const int64_t shifts = shape.kernel_w * std::min(shape.kernel_h, shape.stride_h);
  const int64_t rows_down = (shape.kernel_h - 1) * shape.dilation_h / shape.stride_h + 1;
  const int64_t mask = round_up(shape.out_h() * shape.out_w(), tile) + rows_down * shape.out_w() + 2 * kLineFloats;
  return shifts * mask * static_cast<int64_t>(sizeof(float));
}

}  // namespace onetap
