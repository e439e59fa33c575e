// A convolution made ready for the fast kernels.
//
// The pixels of an output plane are numbered rows first and cut into vectors; `vectors` of them times `outputs`
// channels stay in registers. For some input channels and a tile of pixels, the inputs are packed into scratch
// (pack_layout.h) so that every tap is one aligned place in the pack.
//
// Places and weights lie in two streams in exactly the order in which the kernel uses them; a place is the number of a
// vector in 16 bits, because in small planes it is the streams that the kernel waits for. A chunk (some outputs with
// the same positions) has as many entries as its slices keep weights: an empty slice is no entry.
#pragma once

#include "onetap/kernels/aligned.h"
#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/pack_layout.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onetap {

// The most output channels and vectors that any kernel holds in registers.
constexpr int kMaxOutputs = 4;
constexpr int kMaxVectors = 8;

// How a kernel walks the convolution. None of it changes the result beyond rounding.
struct ConvBlocking {
  int outputs = 4;            // output channels in registers; fewer where fewer share their positions
  int vectors = 6;            // vectors of pixels in registers
  int64_t channels = 80;      // input channels packed at a time
  int64_t tile_vectors = 24;  // vectors of pixels packed at a time
  bool dense = false;         // visit every position, with zeros for what was pruned

  bool operator==(const ConvBlocking& other) const {
    return outputs == other.outputs && vectors == other.vectors && channels == other.channels &&
           tile_vectors == other.tile_vectors && dense == other.dense;
  }
};

struct KernelSet;

class ConvPlan {
 public:
  // For these kernels alone; a blocking that they have no tile for is cut to one they have.
  ConvPlan(const ConvShape& shape, const ConvWeights& weights, const ConvBlocking& blocking, const KernelSet& kernels);

  // Consecutive entries of the stream with the same number of outputs.
  struct Segment {
    int outputs = 1;
    int64_t first_chunk = 0;
    int64_t chunks = 0;
  };

  // Some input channels of a group.
  struct Block {
    int64_t first_channel = 0;
    int64_t channels = 0;
    // Entries of chunk k: [entries_from[k], entries_from[k + 1]) of the stream of places.
    std::vector<int64_t> entries_from;
    std::vector<int64_t> weights_from;  // per segment: where in the stream of weights
  };

  const ConvShape& shape() const { return shape_; }
  const ConvBlocking& blocking() const { return blocking_; }
  int lanes() const { return lanes_; }
  const PackLayout& layout() const { return layout_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // Blocks of group g: blocks()[g * blocks_per_group() ...].
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t blocks_per_group() const { return static_cast<int64_t>(blocks_.size()) / shape_.groups; }
  int64_t chunks() const { return static_cast<int64_t>(chunk_outputs_.size()); }  // per group
  const int32_t* chunk_outputs() const { return chunk_outputs_.data(); }  // first output of each, within the group
  const uint16_t* places() const { return places_; }
  const float* weights() const { return weights_; }

  // The streams moved to memory of the caller's, on a cache line: those of many layers together fit on huge pages.
  int64_t stream_bytes() const { return weight_floats() * 4 + round_up(place_count_ * 2, kLineBytes); }
  void move_streams(std::byte* to);
  const float* bias() const { return bias_.data(); }

  // Multiply-adds for one image: one per weight of the stream and pixel.
  int64_t macs() const { return weight_count_ * pixels(); }

  int64_t pixels() const { return shape_.out_h() * shape_.out_w(); }
  int64_t tiles() const { return (vectors_of_plane() + blocking_.tile_vectors - 1) / blocking_.tile_vectors; }
  int64_t vectors_of_plane() const { return (pixels() + lanes_ - 1) / lanes_; }
  // The pack, and before it the parts of the planes where there is a stride.
  int64_t scratch_floats() const { return parts_floats() + layout_.channel_floats() * blocking_.channels; }
  int64_t parts_floats() const { return layout_.parts_floats(blocking_.channels); }
  int64_t weight_bytes() const { return place_count_ * 2 + weight_count_ * 4 + static_cast<int64_t>(bias_.size()) * 4; }

 private:
  int64_t weight_floats() const { return round_up(weight_count_, kLineFloats); }
  void cut_chunks();
  struct Entry;
  template <typename Visit>
  void visit_entries(const ConvWeights& weights, const Block& block, int64_t chunk, Visit&& visit) const;
  void lay_out_streams(const ConvWeights& weights);
  void write_streams(const ConvWeights& weights);

  ConvShape shape_;
  ConvBlocking blocking_;
  int lanes_;
  PackLayout layout_;
  std::vector<Segment> segments_;
  std::vector<Block> blocks_;
  std::vector<int32_t> chunk_outputs_;
  AlignedArray<std::byte> streams_;  // until they are moved
  uint16_t* places_ = nullptr;
  float* weights_ = nullptr;
  int64_t place_count_ = 0, weight_count_ = 0;
  std::vector<float> bias_;
};

// The most that a ConvPlan of these takes: its streams, and a mask for every shift of the output plane.
int64_t conv_plan_bytes(const ConvShape& shape, const ConvBlocking& blocking, const KernelSet& kernels);

}  // namespace onetap
