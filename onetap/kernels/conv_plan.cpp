#include "onetap/kernels/conv_plan.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/kernel_set.h"

#include <algorithm>
#include <cstring>

namespace onetap {
namespace {

int64_t cut(int64_t value, int64_t least, int64_t most) {
  return std::max(least, std::min(value, most));
}

// Places are numbers of 16 bits.
constexpr int64_t kMaxPlaces = 1 << 16;

// Which kernel positions any slice keeps.
std::vector<bool> used_positions(const ConvShape& shape, const ConvWeights& weights, bool dense) {
  if (dense) return std::vector<bool>(static_cast<size_t>(shape.area()), true);
  const TapLayout layout = shape.layout();
  std::vector<bool> used(static_cast<size_t>(shape.area()), false);
  for (int64_t i = 0; i < layout.codes(); ++i) {
    if (weights.positions[i] != layout.none()) used.at(weights.positions[i]) = true;
  }
  return used;
}

// What the kernels and the shape allow of it.
ConvBlocking cut_blocking(const ConvShape& shape, ConvBlocking blocking, const KernelSet& kernels) {
  const int64_t vectors = (shape.out_h() * shape.out_w() + kernels.lanes - 1) / kernels.lanes;
  blocking.outputs = static_cast<int>(cut(blocking.outputs, 1, kMaxOutputs));
  blocking.vectors = static_cast<int>(cut(blocking.vectors, 1, kernels.max_vectors(blocking.outputs)));
  blocking.channels = cut(blocking.channels, 1, shape.in_per_group());
  blocking.tile_vectors = cut(blocking.tile_vectors, 1, vectors);
  blocking.dense = blocking.dense || shape.taps == 0;
  // Outputs that share positions across a border of groups see different inputs.
  if (!blocking.dense && shape.groups > 1 && shape.out_per_group() % shape.share_outputs != 0) blocking.outputs = 1;
  return blocking;
}

}  // namespace

ConvPlan::ConvPlan(const ConvShape& shape, const ConvWeights& weights, const ConvBlocking& blocking,
                   const KernelSet& kernels)
    : shape_(shape),
      blocking_(cut_blocking(shape, blocking, kernels)),
      lanes_(kernels.lanes),
      layout_(shape, used_positions(shape, weights, blocking_.dense), blocking_.tile_vectors * lanes_, lanes_, true) {
  const int64_t channel_places = layout_.channel_floats() / lanes_;
  if (channel_places > kMaxPlaces) {
    fail_usage("[kernels] a {}x{} kernel on planes of {}x{} is beyond what a tile can hold", shape_.kernel_h,
               shape_.kernel_w, shape_.in_h, shape_.in_w);
  }
  blocking_.channels = std::min(blocking_.channels, kMaxPlaces / channel_places);
  if (weights.bias != nullptr) {
    bias_.assign(weights.bias, weights.bias + shape.out);
  } else {
    bias_.assign(static_cast<size_t>(shape.out), 0.0f);
  }
  cut_chunks();
  lay_out_streams(weights);
  write_streams(weights);
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
  const auto visit_channel = [&](int64_t c) {
    if (blocking_.dense) {
      for (int64_t position = 0; position < shape_.area(); ++position) visit(Entry{c, position, position});
      return;
    }
    const uint16_t* codes = weights.positions + layout.first_code(output, first + c);
    for (int64_t slot = 0; slot < layout.taps; ++slot) {
      if (codes[slot] != layout.none()) visit(Entry{c, codes[slot], slot});
    }
  };
  // Inputs with the same positions are not visited one after another: a few places in a row at one distance, and then
  // others, made a ResNet-20 of width 80 with blocks of 4x4 2 % slower than with 4x1 (AMD, 32 KiB of first cache).
  const int64_t turns = blocking_.dense ? 1 : std::min(layout.share_inputs, block.channels);
  for (int64_t turn = 0; turn < turns; ++turn) {
    for (int64_t c = turn; c < block.channels; c += turns) visit_channel(c);
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
          *place++ = static_cast<uint16_t>((entry.channel * layout_.channel_floats() + layout_.place(entry.position)) /
                                           lanes_);
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
  return streams + pack_layout_bytes(shape, blocking.tile_vectors * kernels.lanes);
}

}  // namespace onetap
