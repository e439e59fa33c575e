// The vector kernels, written once and compiled once per target: by simd.cpp with Highway's vectors, by plain.cpp with
// the compiler's own. Whoever includes this has defined
//   KERNELS_ATTR        attributes of a function of the target
//   namespace ops       V, load, load_unaligned, load_pairs (even and odd places of two vectors), store,
//                       store_unaligned, store_halves, broadcast, zero, mul_add, add,
//                       at_least (its second argument, or the first where that is larger: a NaN comes through),
//                       bit_and, sum
//   kLanes, kRegisters  floats in a vector, vectors in the registers
//   kTargetName
// and is inside the target's namespace. No include guard: that is the point.

// Accumulators, a row of inputs and a weight must fit the registers.
constexpr int most_vectors(int outputs) {
  if (outputs == 1) return kMaxVectors;
  return std::min(kMaxVectors, (kRegisters - 1) / (outputs + 1));
}

// What the sums of a chunk begin with: bias and residual, or what earlier blocks of inputs left in y.
template <int R, int T>
KERNELS_ATTR inline __attribute__((always_inline)) void begin_sums(const ConvTile& tile, int64_t output,
                                                                   ops::V (&sum)[R][T]) {
  if (tile.bias == nullptr) {
    const float* y = tile.y + output * tile.y_plane;
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) sum[r][t] = ops::load_unaligned(y + r * tile.y_plane + t * kLanes);
    }
    return;
  }
  for (int r = 0; r < R; ++r) {
    const ops::V bias = ops::broadcast(tile.bias[output + r]);
    for (int t = 0; t < T; ++t) sum[r][t] = bias;
  }
  if (tile.residual == nullptr) return;
  const float* from = tile.residual + output * tile.residual_plane;
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) {
      sum[r][t] = ops::add(sum[r][t], ops::load_unaligned(from + r * tile.residual_plane + t * kLanes));
    }
  }
}

template <int R, int T>
KERNELS_ATTR inline __attribute__((always_inline)) void end_sums(const ConvTile& tile, int64_t output,
                                                                 ops::V (&sum)[R][T]) {
  float* y = tile.y + output * tile.y_plane;
  if (tile.relu) {
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) sum[r][t] = ops::at_least(ops::zero(), sum[r][t]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) ops::store_unaligned(sum[r][t], y + r * tile.y_plane + t * kLanes);
  }
}

template <int R, int T>
KERNELS_ATTR void conv_tile(const ConvTile& tile) {
  const uint16_t* ONETAP_RESTRICT places = tile.places;
  const float* ONETAP_RESTRICT weights = tile.weights;
  for (int64_t chunk = 0; chunk < tile.chunks; ++chunk) {
    const int64_t output = tile.outputs[chunk];
    ops::V sum[R][T];
    begin_sums<R, T>(tile, output, sum);
    const int64_t entries = tile.entries_from[chunk + 1] - tile.entries_from[chunk];
    for (int64_t entry = 0; entry < entries; ++entry) {
      const float* ONETAP_RESTRICT x = tile.pack + int64_t{places[entry]} * kLanes;
      if constexpr (R == 1) {
        const ops::V w = ops::broadcast(weights[0]);
        for (int t = 0; t < T; ++t) sum[0][t] = ops::mul_add(w, ops::load(x + t * kLanes), sum[0][t]);
      } else {
        ops::V pixels[T];
        for (int t = 0; t < T; ++t) pixels[t] = ops::load(x + t * kLanes);
        for (int r = 0; r < R; ++r) {
          const ops::V w = ops::broadcast(weights[r]);
          for (int t = 0; t < T; ++t) sum[r][t] = ops::mul_add(w, pixels[t], sum[r][t]);
        }
      }
      weights += R;
    }
    places += entries;
    end_sums<R, T>(tile, output, sum);
  }
}

// A vector that may reach beyond the tensor.
KERNELS_ATTR inline void pack_border(const ShiftedPack& pack, const ShiftedCopy& copy, int64_t from, int64_t i,
                                     float* to) {
  for (int64_t j = i; j < i + kLanes; ++j) {
    to[j] = from + j >= -pack.before && from + j < pack.after ? pack.x[from + j] : 0.0f;
  }
  if (copy.mask != nullptr) {
    ops::store(ops::bit_and(ops::load(to + i), ops::load_unaligned(copy.mask + i)), to + i);
  }
}

// One copy of one plane, all of it inside the tensor.
template <bool kMasked>
KERNELS_ATTR inline void pack_copy(const float* ONETAP_RESTRICT x, const float* ONETAP_RESTRICT mask, int64_t count,
                                   float* ONETAP_RESTRICT to) {
  const auto one = [&](int64_t i) KERNELS_ATTR {
    const ops::V pixels = ops::load_unaligned(x + i);
    ops::store(kMasked ? ops::bit_and(pixels, ops::load_unaligned(mask + i)) : pixels, to + i);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    one(i);
    one(i + kLanes);
    one(i + 2 * kLanes);
    one(i + 3 * kLanes);
  }
  for (; i < count; i += kLanes) one(i);
}

KERNELS_ATTR inline void pack_shifted(const ShiftedPack& pack) {
  for (int64_t c = 0; c < pack.channels; ++c) {
    for (int64_t k = 0; k < pack.copy_count; ++k) {
      const ShiftedCopy& copy = pack.copies[k];
      float* to = pack.pack + c * pack.channel_floats + copy.to;
      const int64_t from = c * pack.x_plane + copy.shift;
      if (from < -pack.before || from + copy.count > pack.after) {
        for (int64_t i = 0; i < copy.count; i += kLanes) pack_border(pack, copy, from, i, to);
      } else if (copy.mask != nullptr) {
        pack_copy<true>(pack.x + from, copy.mask, copy.count, to);
      } else {
        pack_copy<false>(pack.x + from, nullptr, copy.count, to);
      }
    }
  }
}

#include "onetap/kernels/planes-inl.h"

// One row into the even and odd places of it; either may be unwanted (null).
KERNELS_ATTR inline void take_pairs_apart(const float* ONETAP_RESTRICT row, int64_t width, float* even, float* odd) {
  int64_t i = 0;
  for (; (i + kLanes) * 2 <= width; i += kLanes) {
    ops::V a, b;
    ops::load_pairs(row + 2 * i, a, b);
    if (even != nullptr) ops::store_unaligned(a, even + i);
    if (odd != nullptr) ops::store_unaligned(b, odd + i);
  }
  for (int64_t j = i; even != nullptr && 2 * j < width; ++j) even[j] = row[2 * j];
  for (int64_t j = i; odd != nullptr && 2 * j < width; ++j) odd[j] = 2 * j + 1 < width ? row[2 * j + 1] : 0.0f;
}

KERNELS_ATTR inline void take_apart(const TakeApart& task) {
  const int64_t part = task.part_h * task.part_w, parts = task.stride_h * task.stride_w;
  for (int64_t c = 0; c < task.channels; ++c) {
    const float* plane = task.x + c * task.x_plane;
    float* to = task.parts + c * parts * part;
    int64_t row = task.first_row;
    // Rows of half a vector: two of them at a time fill one.
    if (task.stride_h == 2 && task.stride_w == 2 && task.width == kLanes) {
      for (; row < task.last_row && 2 * row + 1 < task.height; ++row) {
        ops::V even, odd;
        ops::load_pairs(plane + 2 * row * task.width, even, odd);
        ops::store_halves(even, to + row * task.part_w, to + 2 * part + row * task.part_w);
        ops::store_halves(odd, to + part + row * task.part_w, to + 3 * part + row * task.part_w);
      }
    }
    for (; row < task.last_row; ++row) {
      for (int64_t a = 0; a < task.stride_h; ++a) {
        const int64_t y = row * task.stride_h + a;
        const bool* wanted = task.wanted + a * task.stride_w;
        const float* from = plane + y * task.width;
        float* row_to = to + a * task.stride_w * part + row * task.part_w;
        if (task.stride_w == 2 && y < task.height) {
          if (!wanted[0] && !wanted[1]) continue;
          take_pairs_apart(from, task.width, wanted[0] ? row_to : nullptr, wanted[1] ? row_to + part : nullptr);
          continue;
        }
        for (int64_t b = 0; b < task.stride_w; ++b) {
          for (int64_t i = 0; wanted[b] && i < task.part_w; ++i) {
            const int64_t x = i * task.stride_w + b;
            row_to[b * part + i] = y < task.height && x < task.width ? from[x] : 0.0f;
          }
        }
      }
    }
  }
}

KERNELS_ATTR inline void linear(int64_t in, int64_t out, const float* weight, const float* bias, const float* x,
                                float* y, bool relu) {
  for (int64_t d = 0; d < out; ++d) {
    const float* row = weight + d * in;
    ops::V sums[2] = {ops::zero(), ops::zero()};
    int64_t c = 0;
    for (; c + 2 * kLanes <= in; c += 2 * kLanes) {
      sums[0] = ops::mul_add(ops::load_unaligned(row + c), ops::load_unaligned(x + c), sums[0]);
      sums[1] = ops::mul_add(ops::load_unaligned(row + c + kLanes), ops::load_unaligned(x + c + kLanes), sums[1]);
    }
    float sum = ops::sum(ops::add(sums[0], sums[1])) + (bias != nullptr ? bias[d] : 0.0f);
    for (; c < in; ++c) sum += row[c] * x[c];
    y[d] = relu ? std::max(sum, 0.0f) : sum;
  }
}

KERNELS_ATTR inline void affine(const Planes& planes, const float* scale, const float* shift, const float* x, float* y,
                                bool relu) {
  const float least = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < planes.channels; ++c) {
    const float* from = x + c * planes.plane;
    float* to = y + c * planes.plane;
    const ops::V a = ops::broadcast(scale[c]), b = ops::broadcast(shift[c]), floor = ops::broadcast(least);
    int64_t i = 0;
    for (; i + kLanes <= planes.pixels; i += kLanes) {
      ops::store_unaligned(ops::at_least(floor, ops::mul_add(a, ops::load_unaligned(from + i), b)), to + i);
    }
    for (; i < planes.pixels; ++i) to[i] = std::max(scale[c] * from[i] + shift[c], least);
  }
}

KERNELS_ATTR inline void add(int64_t count, const float* a, const float* b, float* y, bool relu) {
  const float least = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  const ops::V floor = ops::broadcast(least);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    ops::store_unaligned(ops::at_least(floor, ops::add(ops::load_unaligned(a + i), ops::load_unaligned(b + i))), y + i);
  }
  for (; i < count; ++i) y[i] = std::max(a[i] + b[i], least);
}

KERNELS_ATTR inline void relu(int64_t count, const float* x, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    ops::store_unaligned(ops::at_least(ops::zero(), ops::load_unaligned(x + i)), y + i);
  }
  for (; i < count; ++i) y[i] = std::max(x[i], 0.0f);
}

KERNELS_ATTR inline void global_mean(const Planes& planes, const float* x, float* y) {
  for (int64_t c = 0; c < planes.channels; ++c) {
    const float* from = x + c * planes.plane;
    ops::V sums = ops::zero();
    int64_t i = 0;
    for (; i + kLanes <= planes.pixels; i += kLanes) sums = ops::add(sums, ops::load_unaligned(from + i));
    float sum = ops::sum(sums);
    for (; i < planes.pixels; ++i) sum += from[i];
    y[c] = sum / static_cast<float>(planes.pixels);
  }
}

// A row of outputs at a time: the kernel's rows first into one row, then its columns.
KERNELS_ATTR inline void pool(const PoolShape& shape, const float* x, int64_t x_plane, float* y, int64_t y_plane) {
  const float none = shape.is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
  const float scale = shape.is_max ? 1.0f : 1.0f / static_cast<float>(shape.kernel_h * shape.kernel_w);
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t row = 0; row < shape.out_h; ++row) {
      float* to = y + c * y_plane + row * shape.out_w;
      std::fill_n(to, shape.out_w, none);
      for (int64_t k = 0; k < shape.kernel_h * shape.kernel_w; ++k) {
        const int64_t from_row = row * shape.stride_h - shape.padding_h + k / shape.kernel_w;
        if (from_row < 0 || from_row >= shape.in_h) continue;
        const int64_t shift = k % shape.kernel_w - shape.padding_w, step = shape.stride_w;
        const int64_t low = shift >= 0 ? 0 : (-shift + step - 1) / step;
        const int64_t high =
            shape.in_w - 1 - shift < 0 ? 0 : std::min(shape.out_w, (shape.in_w - 1 - shift) / step + 1);
        const float* from = x + c * x_plane + from_row * shape.in_w + shift;
        if (shape.is_max) {
          for (int64_t i = low; i < high; ++i) {
            const float pixel = from[i * step];
            to[i] = pixel > to[i] || pixel != pixel ? pixel : to[i];
          }
        } else {
          for (int64_t i = low; i < high; ++i) to[i] += from[i * step];
        }
      }
      if (!shape.is_max) {
        for (int64_t i = 0; i < shape.out_w; ++i) to[i] *= scale;
      }
    }
  }
}

constexpr int kPeakSums = 12;  // enough to hide the latency, few enough for the registers

KERNELS_ATTR inline double fma_rounds(int64_t rounds, float seed) {
  ops::V sums[kPeakSums];
  for (int i = 0; i < kPeakSums; ++i) sums[i] = ops::broadcast(seed + static_cast<float>(i));
  const ops::V a = ops::broadcast(1.0f - seed * 1e-3f), b = ops::broadcast(seed);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kPeakSums; ++i) sums[i] = ops::mul_add(a, sums[i], b);
  }
  ops::V all = sums[0];
  for (int i = 1; i < kPeakSums; ++i) all = ops::add(all, sums[i]);
  return ops::sum(all);
}

template <int R, int... T>
void fill_conv(KernelSet& set, std::integer_sequence<int, T...>) {
  const auto kernel = [](auto vectors) -> ConvTileKernel {
    if constexpr (decltype(vectors)::value <= most_vectors(R)) {
      return &conv_tile<R, decltype(vectors)::value>;
    } else {
      return nullptr;
    }
  };
  ((set.conv[R - 1][T] = kernel(std::integral_constant<int, T + 1>())), ...);
}

inline const KernelSet& float_kernels() {
  static const KernelSet set = [] {
    KernelSet made({kTargetName, DType::kF32});
    made.lanes = kLanes;
    made.registers = kRegisters;
    using Vectors = std::make_integer_sequence<int, kMaxVectors>;
    static_assert(kMaxOutputs == 4, "one line per width");
    fill_conv<1>(made, Vectors());
    fill_conv<2>(made, Vectors());
    fill_conv<3>(made, Vectors());
    fill_conv<4>(made, Vectors());
    made.pack_shifted = &pack_shifted;
    made.take_apart = &take_apart;
    made.pad_planes = &pad_planes;
    made.plane_sums = &plane_sums;
    made.linear = &linear;
    made.affine = &affine;
    made.add = &add;
    made.relu = &relu;
    made.global_mean = &global_mean;
    made.pool = &pool;
    made.fma_rounds = &fma_rounds;
    made.flops_per_round = 2 * kLanes * kPeakSums;
    return made;
  }();
  return set;
}
