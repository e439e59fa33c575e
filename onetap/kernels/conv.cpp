#include "onetap/kernels/conv.h"

#include "onetap/kernels/pack.h"

#include <algorithm>

namespace onetap {
namespace {

// Tiles are shared out one by one where every thread gets some; else every thread packs every tile, for its share of
// the outputs.
constexpr int64_t kTilesPerThread = 3;

int64_t all_tiles(const ConvPlan& plan) {
  return plan.tiles() * plan.shape().groups;
}

struct Range {
  int64_t first, last;
};

Range share_of(int64_t count, int64_t part, int64_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// The chunks [range) of every segment, over the packed tile.
void run_chunks(const KernelSet& kernels, const ConvPlan& plan, const ConvPlan::Block& block, const Range& range,
                int64_t vectors, ConvTile tile) {
  for (size_t s = 0; s < plan.segments().size(); ++s) {
    const ConvPlan::Segment& segment = plan.segments()[s];
    const int64_t first = std::max(range.first, segment.first_chunk);
    const int64_t last = std::min(range.last, segment.first_chunk + segment.chunks);
    if (first >= last) continue;
    const int64_t entries_before = (first - segment.first_chunk) * block.entries;
    tile.places = plan.places() + block.places_from[s] + entries_before;
    tile.weights = plan.weights() + block.weights_from[s] + entries_before * segment.outputs;
    tile.outputs = plan.chunk_outputs() + first;
    tile.chunks = last - first;
    tile.entries = block.entries;
    kernels.conv[segment.outputs - 1][vectors - 1](tile);
  }
}

}  // namespace

int64_t conv_parts(const ConvPlan& plan, int64_t threads) {
  if (threads == 1) return 1;
  return all_tiles(plan) >= kTilesPerThread * threads ? all_tiles(plan) : std::min(threads, plan.chunks());
}

void run_conv(const KernelSet& kernels, const ConvPlan& plan, const ConvIo& io, float* scratch, int64_t part,
              int64_t parts) {
  const ConvShape& shape = plan.shape();
  const int64_t lanes = plan.lanes(), tile_vectors = plan.blocking().tile_vectors;
  const int64_t items = all_tiles(plan);
  const bool by_tiles = parts == items;
  const Range tiles = by_tiles ? share_of(items, part, parts) : Range{0, items};
  const Range chunks = by_tiles ? Range{0, plan.chunks()} : share_of(plan.chunks(), part, parts);
  const int64_t blocks = plan.blocks_per_group();
  for (int64_t item = tiles.first; item < tiles.last; ++item) {
    const int64_t group = item / plan.tiles(), first_vector = item % plan.tiles() * tile_vectors;
    const int64_t vectors = std::min(tile_vectors, plan.vectors_of_plane() - first_vector);
    const int64_t output = group * shape.out_per_group();
    for (int64_t b = 0; b < blocks; ++b) {
      const ConvPlan::Block& block = plan.blocks()[static_cast<size_t>(group * blocks + b)];
      pack_tile(kernels, plan, io.x, io.x_plane, block, first_vector * lanes, vectors, scratch);
      // Register tiles of nearly the same width, rather than wide ones and a narrow rest.
      const int64_t pieces = (vectors + plan.blocking().vectors - 1) / plan.blocking().vectors;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        const Range wide = share_of(vectors, piece, pieces);
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
        run_chunks(kernels, plan, block, chunks, wide.last - wide.first, tile);
      }
    }
  }
}

}  // namespace onetap
