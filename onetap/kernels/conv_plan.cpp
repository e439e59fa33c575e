#include "onetap/kernels/conv_plan.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/kernel_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onetap {
namespace {

int64_t cut(int64_t value, int64_t least, int64_t most) {
  return std::max(least, std::min(value, most));
}

// Places are numbers of 16 bits.
constexpr int64_t kMaxPlaces = 1 << 16;

// Which kernel positions any slice keeps.
std::vector<bool> used_positions(const ConvShape& shape, const ConvWeights& weights) {
  if (shape.taps == 0) return std::vector<bool>(static_cast<size_t>(shape.area()), true);
  const TapLayout layout = shape.layout();
  std::vector<bool> used(static_cast<size_t>(shape.area()), false);
  for (int64_t i = 0; i < layout.codes(); ++i) {
    if (weights.positions[i] != layout.none()) used.at(weights.positions[i]) = true;
  }
  return used;
}

}  // namespace

ConvPlan::ConvPlan(const ConvShape& shape, const ConvWeights& weights, const ConvBlocking& blocking,
                   const KernelSet& kernels)
    : shape_(shape), blocking_(blocking), lanes_(kernels.lanes) {
  blocking_.outputs = static_cast<int>(cut(blocking.outputs, 1, kMaxOutputs));
  blocking_.vectors = static_cast<int>(cut(blocking.vectors, 1, kernels.max_vectors(blocking_.outputs)));
  blocking_.channels = cut(blocking.channels, 1, shape.in_per_group());
  blocking_.tile_vectors = cut(blocking.tile_vectors, 1, vectors_of_plane());
  blocking_.dense = blocking.dense || shape.taps == 0;
  // Outputs that share positions across a border of groups see different inputs.
  if (!blocking_.dense && shape.groups > 1 && shape.out_per_group() % shape.share_outputs != 0) {
    blocking_.outputs = 1;
  }
  if (weights.bias != nullptr) {
    bias_.assign(weights.bias, weights.bias + shape.out);
  } else {
    bias_.assign(static_cast<size_t>(shape.out), 0.0f);
  }
  lay_out_copies(blocking_.dense ? std::vector<bool>(static_cast<size_t>(shape.area()), true)
                                 : used_positions(shape, weights));
  if (is_shifted()) draw_masks();
  cut_chunks();
  lay_out_streams(weights);
  write_streams(weights);
}

// Kernel row k * dilation = down * stride + rest: taps whose rest is equal see the same rows, `down` output rows apart.
// A copy is stored so that those rows begin a vector; where `down` rows are no whole number of vectors, it takes one
// copy per remainder.
void ConvPlan::lay_out_copies(const std::vector<bool>& used) {
  const int64_t width = shape_.out_w();
  const int64_t tile = blocking_.tile_vectors * lanes_;
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
                  row % shape_.stride_h - shape_.padding_h, down % lanes_};
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
    channel_floats_ += tile + last[i] - first[i];
  }
  // Channels a multiple of 4 KiB apart would fight for the same cache sets.
  if (channel_floats_ % 1024 == 0) channel_floats_ += lanes_;
  const int64_t channel_places = channel_floats_ / lanes_;
  if (channel_places > kMaxPlaces) {
    fail_usage("[kernels] a {}x{} kernel on planes of {}x{} is beyond what a tile can hold", shape_.kernel_h,
               shape_.kernel_w, shape_.in_h, shape_.in_w);
  }
  blocking_.channels = std::min(blocking_.channels, kMaxPlaces / channel_places);
  position_place_.assign(used.size(), 0);
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) position_place_[k] = (copies_[copy_of[k]].start + begin_of[k] - first[copy_of[k]]) / lanes_;
  }
}

// One mask per shift, as long as any copy of any tile reaches: all bits where the shifted pixel is of the same row and
// inside the plane.
void ConvPlan::draw_masks() {
  wanted_parts_ = std::make_unique<bool[]>(static_cast<size_t>(parts()));
  for (const Copy& copy : copies_) {
    const int64_t part =
        floor_mod(copy.row, shape_.stride_h) * shape_.stride_w + floor_mod(copy.column, shape_.stride_w);
    wanted_parts_[static_cast<size_t>(part)] = true;
  }
  const int64_t width = shape_.out_w();
  int64_t length = 0;
  for (const Copy& copy : copies_) length = std::max(length, copy.first + copy.rows_down);
  length = round_up(length + round_up(pixels(), lanes_ * blocking_.tile_vectors) + lanes_, kLineFloats);
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

// Outputs that share positions, cut into as many as fit the registers; widest first, so that a kernel of one width runs
// long.
void ConvPlan::cut_chunks() {
  const int64_t outputs = shape_.out_per_group();
  const int64_t share = blocking_.dense ? outputs : std::min(shape_.share_outputs, outputs);
  for (int width = blocking_.outputs; width >= 1; --width) {
    const auto before = static_cast<int64_t>(chunk_outputs_.size());
    for (int64_t set = 0; set < outputs; set += share) {
      const int64_t end = std::min(set + share, outputs);
      for (int64_t d = set; d < end; d += blocking_.outputs) {
        if (std::min<int64_t>(blocking_.outputs, end - d) == width) chunk_outputs_.push_back(static_cast<int32_t>(d));
      }
    }
    const auto chunks = static_cast<int64_t>(chunk_outputs_.size()) - before;
    if (chunks > 0) segments_.push_back({width, before, chunks});
  }
}

// What a chunk does with one vector of the pack.
struct ConvPlan::Entry {
  int64_t channel;   // of the block
  int64_t position;  // of the kernel
  int64_t slot;      // which of a slice's weights it takes
};

// Calls visit(Entry) for each entry of a chunk, in the order of the streams. Empty entries are left out; a dense walk
// visits every position.
template <typename Visit>
void ConvPlan::visit_entries(const ConvWeights& weights, const Block& block, int64_t chunk, Visit&& visit) const {
  const TapLayout layout = shape_.layout();
  const int64_t in = shape_.in_per_group();
  const int64_t group = block.first_channel / in, first = block.first_channel % in;
  const int64_t output = group * shape_.out_per_group() + chunk_outputs_[static_cast<size_t>(chunk)];
  for (int64_t c = 0; c < block.channels; ++c) {
    if (blocking_.dense) {
      for (int64_t position = 0; position < shape_.area(); ++position) visit(Entry{c, position, position});
      continue;
    }
    const uint16_t* codes = weights.positions + layout.first_code(output, first + c);
    for (int64_t slot = 0; slot < layout.taps; ++slot) {
      if (codes[slot] != layout.none()) visit(Entry{c, codes[slot], slot});
    }
  }
}

// Counts the entries of every chunk, which says where in the streams each begins.
void ConvPlan::lay_out_streams(const ConvWeights& weights) {
  const int64_t in = shape_.in_per_group();
  for (int64_t g = 0; g < shape_.groups; ++g) {
    for (int64_t c = 0; c < in; c += blocking_.channels) {
      Block block{g * in + c, std::min(blocking_.channels, in - c), {place_count_}, {}};
      for (const Segment& segment : segments_) {
        block.weights_from.push_back(weight_count_);
        const int64_t before = place_count_;
        for (int64_t chunk = segment.first_chunk; chunk < segment.first_chunk + segment.chunks; ++chunk) {
          visit_entries(weights, block, chunk, [&](const Entry&) { ++place_count_; });
          block.entries_from.push_back(place_count_);
        }
        weight_count_ += (place_count_ - before) * segment.outputs;
      }
      blocks_.push_back(std::move(block));
    }
  }
}

void ConvPlan::write_streams(const ConvWeights& weights) {
  streams_ = aligned_array<std::byte>(stream_bytes());
  std::memset(streams_.get(), 0, static_cast<size_t>(stream_bytes()));  // the ends of lines too
  weights_ = reinterpret_cast<float*>(streams_.get());
  places_ = reinterpret_cast<uint16_t*>(weights_ + weight_floats());
  uint16_t* place = places_;
  float* weight = weights_;
  const TapLayout layout = shape_.layout();
  const int64_t in = shape_.in_per_group(), given = shape_.taps_per_slice();
  const auto weight_of = [&](int64_t output, int64_t channel, const Entry& entry) {
    const float* slice = weights.weight + (output * in + channel) * given;
    if (!blocking_.dense || shape_.taps == 0) return slice[entry.slot];
    // A dense walk has zeros for what was pruned.
    const uint16_t* kept = weights.positions + layout.first_code(output, channel);
    const uint16_t* found = std::find(kept, kept + given, static_cast<uint16_t>(entry.position));
    return found == kept + given ? 0.0f : slice[found - kept];
  };
  for (const Block& block : blocks_) {
    const int64_t first_output = block.first_channel / in * shape_.out_per_group(), first = block.first_channel % in;
    for (const Segment& segment : segments_) {
      for (int64_t chunk = segment.first_chunk; chunk < segment.first_chunk + segment.chunks; ++chunk) {
        const int64_t output = first_output + chunk_outputs_[static_cast<size_t>(chunk)];
        visit_entries(weights, block, chunk, [&](const Entry& entry) {
          *place++ = static_cast<uint16_t>(entry.channel * (channel_floats_ / lanes_) +
                                           position_place_[static_cast<size_t>(entry.position)]);
          for (int r = 0; r < segment.outputs; ++r) *weight++ = weight_of(output + r, first + entry.channel, entry);
        });
      }
    }
  }
}

void ConvPlan::move_streams(std::byte* to) {
  std::memcpy(to, weights_, static_cast<size_t>(stream_bytes()));
  weights_ = reinterpret_cast<float*>(to);
  places_ = reinterpret_cast<uint16_t*>(weights_ + weight_floats());
  streams_.reset();
}

int64_t conv_plan_bytes(const ConvShape& shape, const ConvBlocking& blocking, const KernelSet& kernels) {
  const int64_t visited = blocking.dense ? shape.area() : shape.taps_per_slice();
  const int64_t entries = shape.out * shape.in_per_group() * visited;
  const int64_t streams = entries * static_cast<int64_t>(sizeof(float) + sizeof(uint16_t)) + 2 * kLineBytes;
  const int64_t shifts = shape.kernel_w * std::min(shape.kernel_h, shape.stride_h);
  const int64_t rows_down = (shape.kernel_h - 1) * shape.dilation_h / shape.stride_h + 1;
  const int64_t tiled = round_up(shape.out_h() * shape.out_w(), blocking.tile_vectors * kernels.lanes);
  const int64_t mask = tiled + rows_down * shape.out_w() + 2 * kLineFloats;
  return streams + shifts * mask * static_cast<int64_t>(sizeof(float));
}

}  // namespace onetap
