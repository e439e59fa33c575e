// The table of kernels: a row per kind of CPU and number type. Dispatch, tests and benchmarks all read it. To add
// kernels of another type is to add rows; whoever asks for one that is not there gets an error that says which.
#pragma once

#include "onetap/base/tensor.h"
#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/int8_kernels.h"
#include "onetap/kernels/plane_plan.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// One register tile of a convolution: some vectors of pixels of some chunks of outputs, for one block of inputs.
struct ConvTile {
  const float* pack = nullptr;       // the block's inputs, at the tile's first pixel
  const int32_t* outputs = nullptr;  // first output of each chunk
  int64_t chunks = 0;
  // Chunk k has entries_from[k + 1] - entries_from[k] entries. The streams begin with the first of chunk 0: for each
  // entry which vector of the pack, and one weight per output.
  const int64_t* entries_from = nullptr;
  const uint16_t* places = nullptr;
  const float* weights = nullptr;
  float* y = nullptr;  // at the tile's first pixel of output 0
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

// Planes into the scratch of a PlanePlan, between its zeros. Column i of a row goes to part (i + left) % stride_w,
// place (i + left) / stride_w; floats behind a row, up to a vector, are set to 0 or left alone.
struct PadPlanes {
  const float* x = nullptr;
  int64_t x_plane = 0;
  int64_t after = 0;  // floats that may be read from x on
  int64_t channels = 0;
  int64_t rows = 0, width = 0;
  int64_t stride_w = 1;
  int64_t left = 0;
  int64_t pitch = 0;     // floats from one row to the next
  int64_t part = 0;      // ... from one part to the next
  int64_t to_plane = 0;  // ... from one padded plane to the next
  float* to = nullptr;   // where the first row of the first plane's first part begins, zeros before it included
};

// Planes of the result of a PlanePlan, or a tile of each.
struct PlaneSums {
  const float* x = nullptr;  // the copies of the first group
  int64_t group_floats = 0;  // from one group's copies to the next
  int64_t groups = 0;
  int64_t results = 0;  // of a group
  const PlaneUnit* units = nullptr;
  int64_t unit_count = 0, whole_units = 0;
  // The units' rows, where all results have the same 3x3 taps a row, and a column, apart: rows of units, and floats
  // from one to the next. 0: any taps.
  int64_t window_rows = 0, row_floats = 0, units_per_row = 0;
  // Taps of result d, counted from the first group's first: [from[d], from[d + 1]) of these.
  const int64_t* from = nullptr;
  const int32_t* offsets = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  int64_t residual_plane = 0;
  float* y = nullptr;
  int64_t y_plane = 0;
  int64_t pixels = 0;
  bool relu = false;
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

// What a row of the table is found by.
struct KernelKey {
  const char* name = "";  // the target, as ONETAP_TARGET spells it
  DType type = DType::kF32;
};

[[noreturn]] void fail_missing_kernel(const KernelKey& key, const char* op);

// One cell of the table: the function for an op, or none. To call none is an error with op, target and type.
template <typename Function>
class Kernel;
template <typename Result, typename... Arguments>
class Kernel<Result(Arguments...)> {
 public:
  Kernel(const KernelKey& key, const char* op) : key_(key), op_(op) {}
  Kernel& operator=(Result (*function)(Arguments...)) {
    function_ = function;
    return *this;
  }

  Result operator()(Arguments... arguments) const {
    if (function_ == nullptr) fail_missing_kernel(key_, op_);
    return function_(arguments...);
  }
  explicit operator bool() const { return function_ != nullptr; }

 private:
  KernelKey key_;
  const char* op_;
  Result (*function_)(Arguments...) = nullptr;
};

// One row of the table. The cells below take floats; a row of another type leaves empty what it has no kernel for, and
// adds cells for what takes its numbers.
struct KernelSet : KernelKey {
  explicit KernelSet(const KernelKey& key) : KernelKey(key) {}

  int lanes = 1;       // values in a vector
  int registers = 16;  // vectors that fit the registers
  // By outputs - 1 and vectors - 1; null where the tile does not fit the registers.
  ConvTileKernel conv[kMaxOutputs][kMaxVectors] = {};
  Kernel<void(const ShiftedPack& pack)> pack_shifted{*this, "pack_shifted"};
  Kernel<void(const TakeApart& task)> take_apart{*this, "take_apart"};
  Kernel<void(const PadPlanes& task)> pad_planes{*this, "pad_planes"};
  Kernel<void(const PlaneSums& task)> plane_sums{*this, "plane_sums"};
  // y[out] = weight[out, in] x + bias (null: none).
  Kernel<void(int64_t in, int64_t out, const float* weight, const float* bias, const float* x, float* y, bool relu)>
      linear{*this, "linear"};
  // y = x scaled and shifted per channel.
  Kernel<void(const Planes& planes, const float* scale, const float* shift, const float* x, float* y, bool relu)>
      affine{*this, "affine"};
  Kernel<void(int64_t count, const float* a, const float* b, float* y, bool relu)> add{*this, "add"};
  Kernel<void(int64_t count, const float* x, float* y)> relu{*this, "relu"};
  // y[channels]: the mean of each plane.
  Kernel<void(const Planes& planes, const float* x, float* y)> global_mean{*this, "gap"};
  // x_plane and y_plane: floats from one plane to the next.
  Kernel<void(const PoolShape& shape, const float* x, int64_t x_plane, float* y, int64_t y_plane)> pool{*this, "pool"};
  // GFLOP/s is `flops` of one call over its time: multiply-adds in registers alone, `rounds` of them. It returns what
  // it computed, so that it is computed.
  Kernel<double(int64_t rounds, float seed)> fma_rounds{*this, "fma_rounds"};
  int64_t flops_per_round = 0;
  // Rows of type I8 have these in place of all that is above.
  const Int8Kernels* int8 = nullptr;

  // The tile of a convolution with so many outputs and vectors of pixels.
  ConvTileKernel conv_tile(int outputs, int vectors) const {
    const ConvTileKernel kernel = conv[outputs - 1][vectors - 1];
    if (kernel == nullptr) fail_missing_kernel(*this, "conv");
    return kernel;
  }
  // Vectors of pixels that a tile of so many outputs may have at most.
  int max_vectors(int outputs) const;
};

// Rows of that type that this build has and this CPU runs, best target first. The last one is plain C++ and runs
// everywhere. Empty if there are no kernels of the type.
const std::vector<const KernelSet*>& kernel_sets(DType type = DType::kF32);

// Every target that a row of some build has, of any type: what help and shells offer. This build may have fewer of
// them, and this CPU run fewer.
const std::vector<std::string>& target_names();

// The row of that target and type: kUsage, listing the targets there are, if there is none. An empty target is that of
// ONETAP_TARGET, or the best.
const KernelSet& find_kernels(std::string_view target = {}, DType type = DType::kF32);

}  // namespace onetap
