#include "onetap/kernels/conv.h"

#include "onetap/kernels/pack.h"
#include "onetap/kernels/pieces.h"

#include <algorithm>

namespace onetap {
namespace {

// When to cut by pixels: how full the tiles of registers must be, and how much packing makes up for emptier ones.
constexpr double kLeastFilled = 0.8, kLeastFilledHeavy = 0.6;
constexpr double kHeavyPacking = 0.025;

// Vectors that packing writes for each multiply-add of vectors.
double packing_share(const ConvPlan& plan) {
  const ConvShape& shape = plan.shape();
  const PackLayout& layout = plan.layout();
  const auto copies = static_cast<int64_t>(layout.copies().size()) + (layout.parts() > 1 ? layout.parts() : 0);
  return static_cast<double>(copies * shape.in * plan.pixels()) / static_cast<double>(plan.macs());
}

// The chunks [range) of every segment, over the packed tile.
void run_chunks(const KernelSet& kernels, const ConvPlan& plan, const ConvPlan::Block& block, const Range& range,
                int64_t vectors, ConvTile tile) {
  for (size_t s = 0; s < plan.segments().size(); ++s) {
    const ConvPlan::Segment& segment = plan.segments()[s];
    const int64_t first = std::max(range.first, segment.first_chunk);
    const int64_t last = std::min(range.last, segment.first_chunk + segment.chunks);
    if (first >= last) continue;
    const int64_t* entries_from = block.entries_from.data() + first;
    const int64_t entries_before = *entries_from - block.entries_from[static_cast<size_t>(segment.first_chunk)];
    tile.places = plan.places() + *entries_from;
    tile.weights = plan.weights() + block.weights_from[s] + entries_before * segment.outputs;
    tile.entries_from = entries_from;
    tile.outputs = plan.chunk_outputs() + first;
    tile.chunks = last - first;
    kernels.conv_tile(segment.outputs, static_cast<int>(vectors))(tile);
  }
}

}  // namespace

ConvCut cut_conv(const ConvPlan& plan, int64_t threads) {
  using By = ConvCut::By;
  if (threads == 1) return {};
  // More parts than threads: one that comes late leaves its own to the others.
  if (plan.shape().groups >= threads * 3) return {By::kGroups, threads * 3};
  // By pixels, a thread packs mostly what it wrote itself, one layer before, and nobody packs what others do. But where
  // that leaves tiles of registers too narrow, everyone packs all, for some of the outputs.
  const int64_t parts = round_up(plan.tiles(), threads), most = plan.blocking().vectors;
  const int64_t vectors = plan.vectors_of_plane() / parts;
  const int64_t full = pieces_of(vectors, most) * most;
  const double least = packing_share(plan) > kHeavyPacking ? kLeastFilledHeavy : kLeastFilled;
  if (static_cast<double>(vectors) >= least * static_cast<double>(full)) return {By::kPixels, parts};
  return {By::kOutputs, std::min(threads, plan.chunks())};
}

void run_conv(const KernelSet& kernels, const ConvPlan& plan, const ConvIo& io, float* scratch, const ConvCut& cut,
              int64_t part) {
  const ConvShape& shape = plan.shape();
  const auto range = [&](ConvCut::By by, int64_t count) {
    return cut.by == by ? share_of(count, part, cut.parts) : Range{0, count};
  };
  const Range groups = range(ConvCut::By::kGroups, shape.groups);
  const Range pixels = range(ConvCut::By::kPixels, plan.vectors_of_plane());
  const Range chunks = range(ConvCut::By::kOutputs, plan.chunks());
  const int64_t lanes = plan.lanes(), blocks = plan.blocks_per_group();
  const int64_t tiles = pieces_of(pixels.count(), plan.blocking().tile_vectors);
  for (int64_t item = groups.first * tiles; item < groups.last * tiles; ++item) {
    const int64_t group = item / tiles, output = group * shape.out_per_group();
    const Range packed = share_of(pixels.count(), item % tiles, tiles);
    const int64_t first_vector = pixels.first + packed.first;
    for (int64_t b = 0; b < blocks; ++b) {
      const ConvPlan::Block& block = plan.blocks()[static_cast<size_t>(group * blocks + b)];
      pack_tile(kernels, plan.layout(),
                {io.x, io.x_plane, block.first_channel, block.channels, first_vector * lanes, packed.count() * lanes,
                 scratch, scratch + plan.parts_floats()});
      const int64_t pieces = pieces_of(packed.count(), plan.blocking().vectors);
      for (int64_t piece = 0; piece < pieces; ++piece) {
        const Range wide = share_of(packed.count(), piece, pieces);
        const int64_t pixel = (first_vector + wide.first) * lanes;
        ConvTile tile;
        tile.pack = scratch + plan.parts_floats() + wide.first * lanes;
        tile.y = io.y + output * io.y_plane + pixel;
        tile.y_plane = io.y_plane;
        tile.bias = b == 0 ? plan.bias() + output : nullptr;
        if (b == 0 && io.residual != nullptr) {
          tile.residual = io.residual + output * io.residual_plane + pixel;
          tile.residual_plane = io.residual_plane;
        }
        tile.relu = io.relu && b == blocks - 1;
        run_chunks(kernels, plan, block, chunks, wide.count(), tile);
      }
    }
  }
}

}  // namespace onetap
