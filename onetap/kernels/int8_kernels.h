// The kernels of int8 networks: what a row of the table (kernel_set.h) of type I8 has. Every target gives the bytes of
// int8_reference.h.
#pragma once

#include "onetap/base/requantize.h"
#include "onetap/kernels/int8_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace onetap {

// What becomes of the sums of one output; Int8Epilogue in the form that kernels read.
struct Int8Output {
  int32_t start = 0;  // the bias, less what the zeros of inputs add to sums
  int32_t residual_factor = 0;
  Requantize requantize{0, 33};
  // requantize.shift - 32, and the half of what is shifted out of the upper half of the product; the shift above 32.
  int32_t right_shift = 1, rounding = 1;
  float dequantize = 0;  // where floats leave
};

// A vector of pixels of a convolution's result: of one row, of a run over rows and what lies between them, or of two
// rows that are half as long as a vector. Bytes count from the begin of a quad.
struct Int8Unit {
  int32_t x = 0;       // where the first tap of the first pixel is read
  int32_t y = 0;       // where the first pixel goes; pixels of a plane where floats leave
  int32_t pixels = 0;  // that are stored
  int32_t mask = -1;   // where it spans several rows: which of the masks says what is border; -1: nothing
};

constexpr int kMaxInt8Vectors = 8;

// How a convolution reads its inputs: four channels of a pixel at a time, as they lie; the same, where a unit is two
// rows; every second pixel, for a stride of 2, likewise of one row or of two; or two channels, each at a place of its
// own, which `expand` has made ready.
enum class Int8Source { kQuads, kTwoRows, kStrided, kStridedTwoRows, kPairs };
constexpr int kInt8Sources = 5;

constexpr bool is_strided(Int8Source source) {
  return source == Int8Source::kStrided || source == Int8Source::kStridedTwoRows;
}
constexpr bool is_of_two_rows(Int8Source source) {
  return source == Int8Source::kTwoRows || source == Int8Source::kStridedTwoRows;
}

// Some units of some quads of outputs. The streams begin with the first quad: offsets of what to read, in bytes from a
// unit's x (two of them for a pair), and for each of them the weights of the outputs that read it.
struct Int8Tile {
  const uint8_t* x = nullptr;
  const Int8Unit* units = nullptr;
  int64_t quads = 0;
  const int32_t* from = nullptr;  // entries of chunk k (kQuad / outputs of them a quad): [from[k], from[k + 1])
  const int32_t* offsets = nullptr;
  const int32_t* weights = nullptr;
  const Int8Output* outputs = nullptr;
  uint8_t* y = nullptr;
  int64_t y_quad = 0;  // bytes from one quad to the next
  // Where units are two rows: bytes from one to the other. x_second is also where a strided unit of one row goes on.
  int64_t x_second = 0, y_row = 0;
  uint8_t y_zero = 0;
  const uint8_t* masks = nullptr;     // 0xFF: a pixel, 0: border
  const uint8_t* residual = nullptr;  // laid out as y
  uint8_t residual_zero = 0;
  int left_shift = 0;
  float* floats = nullptr;  // in place of y: planes without gaps
  int64_t floats_plane = 0;
  int64_t channels = 0;  // of the result that are left from the first quad on: what is stored as floats
  bool is_slow = false;  // floats leave, or an output's shift is 32
};
using Int8TileKernel = void (*)(const Int8Tile&);

struct Int8Kernels {
  const char* float_target = "";  // the row of floats for layers that are kept in them
  int64_t lanes = 4;              // pixels in a vector
  // Words of 32 bits that a target takes the weights of one quad in: 4 bytes, or 4 16-bit numbers, 0 and 2 before 1 and
  // 3, where there is no dot product.
  int weight_words = 1;
  // What is taken off the inputs before they are multiplied, where the dot product is one of signed bytes.
  int32_t input_offset = 0;
  // By source, outputs (1, 2, 4) and vectors - 1; null where there is none.
  Int8TileKernel conv[kInt8Sources][3][kMaxInt8Vectors] = {};
  // What an entry of a chunk of 1, 2 or 4 outputs costs, by source: dot products, or the loads of its pixels, which few
  // of them do not hide. In no unit; measured on whole networks.
  double cost[kInt8Sources][3] = {};
  // The four channels of pixels as planes of 32-bit numbers, `plane` bytes from one to the next: even channels in the
  // lower half, odd ones in the upper half, so that one of each in a vector is what 16-bit products take. Targets
  // without kernels of pairs have none.
  void (*expand)(int64_t pixels, const uint8_t* quad, int64_t plane, uint8_t* to) = nullptr;
  // sums[out] = weight[out][bytes] x, less input_offset; `bytes` a multiple of 64.
  void (*linear)(int64_t bytes, int64_t out, const int8_t* weight, const uint8_t* x, int32_t* sums) = nullptr;
  // sums[4]: of the bytes of a quad's channels, without the border.
  void (*quad_sums)(const QuadLayout& layout, const uint8_t* quad, int32_t* sums) = nullptr;
  // Up to 4 planes of floats, `plane` of them apart, into a quad: x / scale, rounded to the nearest (halves to even),
  // clamped, 0 for a NaN.
  void (*quantize)(const QuadLayout& layout, int64_t planes, float scale, const float* x, int64_t plane, uint8_t zero,
                   uint8_t* quad) = nullptr;
  // y = clamp((sum of inputs * factors + 2^15) >> 16), of bytes that lie alike; zeros of inputs and of y.
  struct Addend {
    const uint8_t* x;
    uint8_t zero;
    int32_t factor;
  };
  void (*add)(int64_t bytes, const Addend* addends, int64_t count, uint8_t zero, uint8_t* y) = nullptr;
  // y = the larger of both.
  void (*max)(int64_t bytes, const uint8_t* a, const uint8_t* b, uint8_t* y) = nullptr;
  // Those bytes of every pixel of y for which the mask (of one pixel) has 0xFF become x's.
  void (*blend)(int64_t pixels, uint32_t mask, const uint8_t* x, uint8_t* y) = nullptr;
  // Every second pixel of a row, from the first on.
  void (*every_second)(int64_t pixels, const uint8_t* x, uint8_t* y) = nullptr;
  // GMAC/s is `macs_per_round` of one round over its time: dot products in registers alone.
  int32_t (*dot_rounds)(int64_t rounds, int32_t seed) = nullptr;
  int64_t macs_per_round = 0;

  Int8TileKernel tile(Int8Source source, int outputs, int vectors) const {
    return conv[static_cast<int>(source)][outputs == 4 ? 2 : outputs - 1][vectors - 1];
  }
  // The most vectors, but not more than `at_most`, that there is a kernel for; 0: none.
  int most_vectors(Int8Source source, int outputs, int64_t at_most = kMaxInt8Vectors) const {
    auto vectors = static_cast<int>(std::min<int64_t>(at_most, kMaxInt8Vectors));
    while (vectors > 0 && tile(source, outputs, vectors) == nullptr) --vectors;
    return vectors;
  }
};

}  // namespace onetap
