// A convolution of bytes made ready for the fast kernels.
//
// Values lie in quads of channels between zeros (int8_layout.h), so that the pixels that a tap reads are one unaligned
// vector of the input, wherever they are: nothing is packed. A stride takes the input apart first, into planes of every
// stride-th pixel in scratch; so does a padding that is wider than the border. Where few outputs read each input, and
// there are kernels for it, a stride of 2 is read as it lies instead: two vectors, of which every second pixel counts.
//
// For some outputs (a chunk of 1, 2 or 4) a stream lists what they read: for every quad of inputs and every position
// that any of their slices keeps there, an offset and a weight for each of outputs x 4 inputs, 0 for slices that do not
// keep that position. Where blocks of 4x4 slices share a position, that is one entry without any zeros; where slices
// are on their own, smaller chunks have fewer zeros and more loads.
//
// Where no four slices share a position, most of the four inputs of an entry are zeros. On targets with kernels of
// pairs the input can therefore be expanded, into scratch: to a plane of 32-bit numbers per channel. An entry then has
// two inputs (2i and 2i + 1), each with an offset of its own, and two 16-bit weights for each output. The cheapest form
// of all is taken.
#pragma once

#include "onetap/kernels/aligned.h"
#include "onetap/kernels/conv_shape.h"
#include "onetap/kernels/int8_io.h"
#include "onetap/kernels/kernel_set.h"

#include <vector>

namespace onetap {

// The widest border that a value is given for the sake of its readers.
constexpr int64_t kMaxBorder = 4;

struct Int8ConvLayouts {
  QuadLayout x, y;  // a residual lies as y
  DType x_type = DType::kU8, y_type = DType::kU8, residual_type = DType::kU8;
};

// Where an image's values are. Where the type of y is F32, `floats` takes planes without gaps.
struct Int8ConvMemory {
  const uint8_t* x = nullptr;
  const uint8_t* residual = nullptr;
  uint8_t* y = nullptr;
  float* floats = nullptr;
  uint8_t* scratch = nullptr;
};

class Int8ConvPlan {
 public:
  // For these kernels, of type I8, alone. kUsage where a value has more bytes than 31 bits count.
  Int8ConvPlan(const ConvShape& shape, const Int8ConvWeights& weights, const Int8Epilogue& epilogue,
               const Int8ConvLayouts& layouts, bool dense, const KernelSet& kernels);

  Int8Source source() const { return source_; }
  int outputs() const { return outputs_; }
  int vectors() const { return vectors_; }
  bool is_dense() const { return dense_; }
  const ConvShape& shape() const { return shape_; }
  // Multiply-adds of one image: one per weight that is kept and pixel, or per position where it runs dense.
  int64_t macs() const { return kept_weights_ * shape_.out_h() * shape_.out_w(); }
  int64_t weight_bytes() const;
  // For the input taken apart or expanded; shared by all threads that work on one image.
  int64_t scratch_bytes() const { return scratch_bytes_; }

  // Parts that may run at once: of the input to be made ready (0: nothing to do) first, then of the convolution.
  int64_t scratch_parts(int64_t threads) const;
  int64_t parts(int64_t threads) const;
  void make_ready(const Int8ConvMemory& memory, int64_t part, int64_t parts) const;
  void run(const Int8ConvMemory& memory, int64_t part, int64_t parts) const;
  // All of it.
  void run(const Int8ConvMemory& memory) const;

 private:
  struct Chunk;

  bool is_apart() const { return !parts_.empty(); }
  bool is_expanded() const { return source_ == Int8Source::kPairs; }
  // From a pixel of the result to the next, in pixels of what is read.
  int64_t step() const { return is_strided(source_) ? 2 : 1; }
  bool gives_floats() const { return layouts_.y_type == DType::kF32; }
  void choose_source();
  void read_strides(const Int8ConvWeights& weights);
  void read_as_it_lies();
  void make_units();
  void add_unit(int64_t x, int64_t y, int64_t pixels, const std::vector<uint8_t>& mask);
  int64_t tap_offset(int64_t position) const;
  template <typename Visit>
  void visit_weights(const Int8ConvWeights& weights, int64_t output, Visit&& visit) const;
  int64_t count_entries(const Int8ConvWeights& weights, Int8Source source, int outputs) const;
  void choose_outputs(const Int8ConvWeights& weights);
  void write_streams(const Int8ConvWeights& weights);
  void write_offsets(const Chunk& chunk);
  int words_per_output() const { return is_expanded() ? 1 : kernels_->int8->weight_words; }
  int offsets_per_entry() const { return is_expanded() ? 2 : 1; }
  void take_apart(const Int8ConvMemory& memory, int64_t quad) const;
  void write_outputs(const Int8ConvWeights& weights, const Int8Epilogue& epilogue);
  void run_tiles(const Int8ConvMemory& memory, int64_t first_unit, int64_t last_unit, int64_t first_quad,
                 int64_t last_quad) const;

  ConvShape shape_;
  Int8ConvLayouts layouts_;
  const KernelSet* kernels_;
  bool dense_;
  Int8Source source_ = Int8Source::kQuads;
  int outputs_ = 4, vectors_ = 1;
  int64_t kept_weights_ = 0;
  int left_shift_ = 0;
  bool is_slow_ = false;

  // Where taps are read: x itself, or its parts in scratch, or either of them expanded there.
  int64_t source_pitch_ = 0, source_quad_ = 0, source_first_ = 0;  // pixels; bytes; bytes to the first pixel's tap 0
  int64_t expanded_at_ = 0;                                        // in scratch; a channel takes the bytes of a quad
  struct Part {
    int64_t row, column;  // of a stride
  };
  std::vector<Part> parts_;
  int64_t part_rows_ = 0;
  int64_t scratch_bytes_ = 0;

  std::vector<Int8Unit> units_;
  std::vector<uint8_t> masks_;
  std::vector<int32_t> from_, offsets_;
  AlignedArray<int32_t> weights_;
  int64_t weight_words_ = 0;
  std::vector<Int8Output> outputs_of_;
};

// The most that an Int8ConvPlan of these takes.
int64_t int8_conv_plan_bytes(const ConvShape& shape, bool dense, const KernelSet& kernels);

}  // namespace onetap
