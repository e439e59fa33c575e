// The table of kernels: one set per kind of CPU. Dispatch, tests and benchmarks all read it.
#pragma once

#include "onetap/kernels/conv_plan.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// One register tile of a convolution: some vectors of pixels of some chunks of outputs, for one block of inputs.
struct ConvTile {
  const float* pack = nullptr;  // the block's inputs, at the tile's first pixel
  // For every entry of every chunk: which vector of the pack, and one weight per output.
  const uint16_t* places = nullptr;
  const float* weights = nullptr;
  const int32_t* outputs = nullptr;  // first output of each chunk
  int64_t chunks = 0;
  int64_t entries = 0;  // per chunk
  float* y = nullptr;   // at the tile's first pixel of output 0
  int64_t y_plane = 0;
  const float* bias = nullptr;  // of output 0: what sums begin with in the first block; null: with what is in y
  const float* residual = nullptr;
  int64_t residual_plane = 0;
  bool relu = false;
};
using ConvTileKernel = void (*)(const ConvTile&);

// One copy of a plane for ConvPlan's pack: to[i] = from[shift + i] & mask[i].
struct ShiftedCopy {
  int64_t shift = 0;
  int64_t count = 0;
  const float* mask = nullptr;  // null: keep all
  int64_t to = 0;
};
struct ShiftedPack {
  const ShiftedCopy* copies = nullptr;
  int64_t copy_count = 0;
  int64_t channels = 0;
  const float* x = nullptr;
  int64_t x_plane = 0;
  // Floats that may be read before x and from x on: what a mask clears may lie in a neighbour's plane, but not outside
  // the tensor.
  int64_t before = 0, after = 0;
  float* pack = nullptr;
  int64_t channel_floats = 0;
};

// Planes into their parts of every stride-th pixel: part (a, b) of a plane holds x[i * stride_h + a][j * stride_w + b],
// 0 where that is outside. Parts lie behind each other, then come those of the next plane.
struct TakeApart {
  const float* x = nullptr;
  int64_t x_plane = 0;
  int64_t channels = 0;
  int64_t height = 0, width = 0;  // of x
  int64_t stride_h = 1, stride_w = 1;
  int64_t part_h = 0, part_w = 0;
  int64_t first_row = 0, last_row = 0;  // of the parts: [first, last) are wanted
  const bool* wanted = nullptr;         // by part
  float* parts = nullptr;
};

struct PoolShape : Window {
  int64_t channels = 1, in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  bool is_max = true;  // else the mean over the whole kernel, padding counted as zeros
};

// One plane after the other, `plane` floats apart. x and y may be the same.
struct Planes {
  int64_t channels = 1;
  int64_t pixels = 1;
  int64_t plane = 1;
};

struct KernelSet {
  const char* name = "";  // as ONETAP_TARGET spells it
  int lanes = 1;          // floats in a vector
  int registers = 16;     // vectors that fit the registers
  // By outputs - 1 and vectors - 1; null where the tile does not fit the registers.
  ConvTileKernel conv[kMaxOutputs][kMaxVectors] = {};
  void (*pack_shifted)(const ShiftedPack& pack) = nullptr;
  void (*take_apart)(const TakeApart& task) = nullptr;
  // y[out] = weight[out, in] x + bias (null: none).
  void (*linear)(int64_t in, int64_t out, const float* weight, const float* bias, const float* x, float* y,
                 bool relu) = nullptr;
  // y = x scaled and shifted per channel.
  void (*affine)(const Planes& planes, const float* scale, const float* shift, const float* x, float* y,
                 bool relu) = nullptr;
  void (*add)(int64_t count, const float* a, const float* b, float* y, bool relu) = nullptr;
  void (*relu)(int64_t count, const float* x, float* y) = nullptr;
  // y[channels]: the mean of each plane.
  void (*global_mean)(const Planes& planes, const float* x, float* y) = nullptr;
  // x_plane and y_plane: floats from one plane to the next.
  void (*pool)(const PoolShape& shape, const float* x, int64_t x_plane, float* y, int64_t y_plane) = nullptr;
  // GFLOP/s is `flops` of one call over its time: multiply-adds in registers alone, `rounds` of them.
  double (*fma_rounds)(int64_t rounds, float seed) = nullptr;  // returns what it computed, so that it is computed
  int64_t flops_per_round = 0;

  // Vectors of pixels that a tile of so many outputs may have at most.
  int max_vectors(int outputs) const;
};

// Sets that this build has and this CPU runs, best first. The last one is plain C++ and runs everywhere.
const std::vector<const KernelSet*>& kernel_sets();

// The set of that name: kUsage, listing those there are, if there is none. Empty: ONETAP_TARGET, or the best.
const KernelSet& find_kernels(std::string_view name = {});

}  // namespace onetap
