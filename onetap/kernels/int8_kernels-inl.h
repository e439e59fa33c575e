// The kernels of int8 networks, written once and compiled once per target, inside its namespace. Whoever includes this
// has defined `ops`:
//   V            a vector of 32-bit sums: zero, set, load, store, add, sub, mul (the lower half), shift_left,
//                shift_right (arithmetic), high_product (the upper half), sum (of its lanes)
//   B            a vector of pixels, as they lie: load_bytes, store_bytes, store_some, as_bytes (of a V), byte (one
//                channel, as V), max, choose (by a mask), narrow (four V, clamped, into their quads), every_second
//   X, W         what a dot product takes: load_x, broadcast_w, load_w, dot
//   rounded      floats over a scale, to the nearest integer and clamped; 0 for a NaN
// and kFloatTarget, kLanes, kWeightWords, kInputOffset, most_vectors. No include guard: that is the point.

constexpr int64_t kVectorBytes = kLanes * kQuad;

// V as it would be in plain numbers: factors of a quarter and more, which round by the lower half of the product.
INT8_INLINE ops::V requantize_slowly(ops::V total, const Requantize& by) {
  alignas(64) int32_t lanes[kLanes];
  ops::store(total, lanes);
  for (int32_t& lane : lanes) lane = requantized(lane, by);
  return ops::load(lanes);
}

// As requantized(): with a shift above 32, what the lower half of the product could carry is shifted out.
INT8_INLINE ops::V requantize(ops::V total, const Requantize& by) {
  if (__builtin_expect(by.shift == 32, 0)) return requantize_slowly(total, by);
  const ops::V rounded = ops::add(ops::high_product(total, by.multiplier), ops::set(int32_t{1} << (by.shift - 33)));
  return ops::shift_right(rounded, by.shift - 32);
}

INT8_INLINE void store_pixels(const Int8Tile& tile, const Int8Unit& unit, ops::B bytes, uint8_t* y) {
  if (unit.mask >= 0) {
    const ops::B border = ops::as_bytes(ops::set(static_cast<int32_t>(uint32_t{tile.y_zero} * 0x01010101u)));
    bytes = ops::choose(ops::load_bytes(tile.masks + unit.mask * kVectorBytes), bytes, border);
  }
  if (unit.pixels == kLanes) {
    ops::store_bytes(bytes, y);
  } else {
    ops::store_some(bytes, y, unit.pixels);
  }
}

inline void store_floats(const Int8Tile& tile, const Int8Unit& unit, int64_t d, ops::V sum) {
  alignas(64) int32_t lanes[kLanes];
  ops::store(sum, lanes);
  float* to = tile.floats + d * tile.floats_plane + unit.y;
  for (int64_t i = 0; i < unit.pixels; ++i) to[i] = static_cast<float>(lanes[i]) * tile.outputs[d].dequantize;
}

// R outputs x T vectors of pixels in registers. Where fewer than four outputs read the same inputs, a quad is made of
// several such chunks, and stored when all of them are there.
template <int R, int T>
void conv_tile(const Int8Tile& tile) {
  const uint8_t* x[T];
  for (int t = 0; t < T; ++t) x[t] = tile.x + tile.units[t].x;
  const int32_t* weights = tile.weights;
  const int32_t* offsets = tile.offsets;
  const int32_t* from = tile.from;
  uint8_t* y = tile.y;
  const uint8_t* residual = tile.residual;
  for (int64_t quad = 0; quad < tile.quads; ++quad) {
    const Int8Output* outputs = tile.outputs + quad * kQuad;
    ops::V results[kQuad][T];
    for (int chunk = 0; chunk < kQuad / R; ++chunk, ++from) {
      ops::V sum[R][T];
      for (int r = 0; r < R; ++r) {
        const ops::V start = ops::set(outputs[chunk * R + r].start);
        for (int t = 0; t < T; ++t) sum[r][t] = start;
      }
      for (int32_t entries = from[1] - from[0]; entries > 0; --entries) {
        const int64_t offset = *offsets++;
        ops::W w[R];
        for (int r = 0; r < R; ++r) w[r] = ops::broadcast_w(weights + int64_t{r} * kWeightWords);
        for (int t = 0; t < T; ++t) {
          const ops::X pixels = ops::load_x(x[t] + offset);
          for (int r = 0; r < R; ++r) sum[r][t] = ops::dot(sum[r][t], pixels, w[r]);
        }
        weights += int64_t{R} * kWeightWords;
      }
      for (int r = 0; r < R; ++r) {
        const int channel = chunk * R + r;
        const Int8Output& output = outputs[channel];
        if (__builtin_expect(tile.floats != nullptr, 0)) {
          for (int t = 0; t < T && quad * kQuad + channel < tile.channels; ++t) {
            store_floats(tile, tile.units[t], quad * kQuad + channel, sum[r][t]);
          }
          continue;
        }
        if (residual != nullptr) {
          const ops::V factor = ops::set(output.residual_factor), zero = ops::set(tile.residual_zero);
          for (int t = 0; t < T; ++t) {
            ops::V addend = ops::byte(ops::load_bytes(residual + tile.units[t].y), channel);
            if (tile.residual_zero != 0) addend = ops::sub(addend, zero);
            sum[r][t] = ops::add(ops::shift_left(sum[r][t], tile.left_shift), ops::mul(addend, factor));
          }
        }
        if (residual == nullptr && tile.left_shift != 0) {
          for (int t = 0; t < T; ++t) sum[r][t] = ops::shift_left(sum[r][t], tile.left_shift);
        }
        for (int t = 0; t < T; ++t) results[channel][t] = requantize(sum[r][t], output.requantize);
      }
    }
    if (__builtin_expect(tile.floats != nullptr, 0)) continue;
    for (int t = 0; t < T; ++t) {
      const ops::B bytes = ops::narrow(results[0][t], results[1][t], results[2][t], results[3][t], tile.y_zero);
      store_pixels(tile, tile.units[t], bytes, y + tile.units[t].y);
    }
    y += tile.y_quad;
    if (residual != nullptr) residual += tile.y_quad;
  }
}

inline void linear(int64_t bytes, int64_t out, const int8_t* weight, const uint8_t* x, int32_t* sums) {
  for (int64_t d = 0; d < out; ++d, weight += bytes) {
    ops::V sum = ops::zero();
    for (int64_t i = 0; i < bytes; i += kVectorBytes) sum = ops::dot(sum, ops::load_x(x + i), ops::load_w(weight + i));
    sums[d] = ops::sum(sum);
  }
}

// A vector's pixels of so many, from i on.
INT8_INLINE int64_t some_of(int64_t pixels, int64_t i) {
  return std::min<int64_t>(kLanes, pixels - i);
}

// A vector of fewer pixels, the rest of it 0: what lies behind them is not for us to read.
INT8_INLINE ops::B load_some(const uint8_t* from, int64_t pixels) {
  if (pixels == kLanes) return ops::load_bytes(from);
  alignas(64) uint8_t bytes[kVectorBytes] = {};
  std::memcpy(bytes, from, static_cast<size_t>(pixels * kQuad));
  return ops::load_bytes(bytes);
}

INT8_INLINE void store_up_to(ops::B bytes, uint8_t* to, int64_t pixels) {
  if (pixels == kLanes) {
    ops::store_bytes(bytes, to);
  } else {
    ops::store_some(bytes, to, pixels);
  }
}

inline void quad_sums(const QuadLayout& layout, const uint8_t* quad, int32_t* sums) {
  ops::V total[kQuad];
  for (ops::V& channel : total) channel = ops::zero();
  for (int64_t row = 0; row < layout.height; ++row) {
    const uint8_t* x = quad + layout.pixel(row, 0);
    for (int64_t i = 0; i < layout.width; i += kLanes) {
      const ops::B bytes = load_some(x + i * kQuad, some_of(layout.width, i));
      for (int c = 0; c < kQuad; ++c) total[c] = ops::add(total[c], ops::byte(bytes, c));
    }
  }
  for (int c = 0; c < kQuad; ++c) sums[c] = ops::sum(total[c]);
}

inline void quantize(const QuadLayout& layout, int64_t planes, float scale, const float* x, int64_t plane, uint8_t zero,
                     uint8_t* quad) {
  const float least = zero != 0 ? -127.0f : 0.0f, most = zero != 0 ? 127.0f : 255.0f;
  for (int64_t row = 0; row < layout.height; ++row, x += layout.width) {
    uint8_t* y = quad + layout.pixel(row, 0);
    for (int64_t i = 0; i < layout.width; i += kLanes) {
      const int64_t pixels = some_of(layout.width, i);
      ops::V values[kQuad];
      for (int64_t c = 0; c < kQuad; ++c) {
        alignas(64) float some[kLanes] = {};
        const float* from = x + c * plane + i;
        if (c >= planes || pixels < kLanes) {
          if (c < planes) std::memcpy(some, from, static_cast<size_t>(pixels) * sizeof(float));
          from = some;
        }
        values[c] = ops::rounded(from, scale, least, most);
      }
      store_up_to(ops::narrow(values[0], values[1], values[2], values[3], zero), y + i * kQuad, pixels);
    }
  }
}

inline void add(int64_t bytes, const Int8Kernels::Addend* addends, int64_t count, uint8_t zero, uint8_t* y) {
  // Modulo 2^32, as the sums are: the zeros of signed values may pass 31 bits on the way.
  uint32_t zeros = 0;
  for (int64_t k = 0; k < count; ++k) {
    zeros += static_cast<uint32_t>(addends[k].zero) * static_cast<uint32_t>(addends[k].factor);
  }
  const auto start = static_cast<int32_t>((uint32_t{1} << 15) - zeros);
  for (int64_t i = 0; i < bytes; i += kVectorBytes) {
    const int64_t pixels = some_of(bytes / kQuad, i / kQuad);
    ops::V sums[kQuad];
    for (ops::V& sum : sums) sum = ops::set(start);
    for (int64_t k = 0; k < count; ++k) {
      const ops::B x = load_some(addends[k].x + i, pixels);
      const ops::V factor = ops::set(addends[k].factor);
      for (int c = 0; c < kQuad; ++c) sums[c] = ops::add(sums[c], ops::mul(ops::byte(x, c), factor));
    }
    for (ops::V& sum : sums) sum = ops::shift_right(sum, 16);
    store_up_to(ops::narrow(sums[0], sums[1], sums[2], sums[3], zero), y + i, pixels);
  }
}

inline void max(int64_t bytes, const uint8_t* a, const uint8_t* b, uint8_t* y) {
  for (int64_t i = 0; i < bytes; i += kVectorBytes) {
    const int64_t pixels = some_of(bytes / kQuad, i / kQuad);
    store_up_to(ops::max(load_some(a + i, pixels), load_some(b + i, pixels)), y + i, pixels);
  }
}

inline void blend(int64_t pixels, uint32_t mask, const uint8_t* x, uint8_t* y) {
  const ops::B keep = ops::as_bytes(ops::set(static_cast<int32_t>(mask)));
  for (int64_t i = 0; i < pixels; i += kLanes) {
    const int64_t some = some_of(pixels, i), at = i * kQuad;
    store_up_to(ops::choose(keep, load_some(x + at, some), load_some(y + at, some)), y + at, some);
  }
}

inline void every_second(int64_t pixels, const uint8_t* x, uint8_t* y) {
  int64_t i = 0;
  // The second vector ends with a pixel that is not wanted, and which may not be there.
  for (; i + kLanes < pixels; i += kLanes) {
    ops::store_bytes(
        ops::every_second(ops::load_bytes(x + 2 * i * kQuad), ops::load_bytes(x + (2 * i + kLanes) * kQuad)),
        y + i * kQuad);
  }
  for (; i < pixels; ++i) std::memcpy(y + i * kQuad, x + 2 * i * kQuad, kQuad);
}

constexpr int kPeakSums = 12;

// The compiler no longer knows what is in these registers, and cannot do once what belongs to every round.
template <typename T>
void hide(T& value) {
  if constexpr (std::is_class_v<T>) {  // widened bytes
    hide(value.even);
    hide(value.odd);
  } else {
    __asm__ volatile("" : INT8_IN_REGISTER(value));
  }
}

// Indices are constants from the start: a compiler that meets the statement of assembler in a loop over the sums keeps
// them in memory, and the rounds measure loads and stores.
template <size_t... K>
int32_t dot_rounds_of(int64_t rounds, int32_t seed, std::index_sequence<K...>) {
  alignas(64) uint8_t bytes[kVectorBytes];
  std::memset(bytes, seed, sizeof bytes);
  const int32_t words[2] = {seed, seed};
  ops::X x = ops::load_x(bytes);
  const ops::W w = ops::broadcast_w(words);
  ops::V sums[sizeof...(K)];
  ((sums[K] = ops::set(seed)), ...);
  const auto add_to = [&](ops::V sum) {
    hide(x);
    sum = ops::dot(sum, x, w);
    hide(sum);
    return sum;
  };
  for (int64_t i = 0; i < rounds; ++i) ((sums[K] = add_to(sums[K])), ...);
  ops::V total = ops::zero();
  ((total = ops::add(total, sums[K])), ...);
  return ops::sum(total);
}

inline int32_t dot_rounds(int64_t rounds, int32_t seed) {
  return dot_rounds_of(rounds, seed, std::make_index_sequence<kPeakSums>());
}

template <int R, int... T>
void fill_conv(Int8Kernels& kernels, std::integer_sequence<int, T...>) {
  const auto kernel = [](auto vectors) -> Int8TileKernel {
    if constexpr (decltype(vectors)::value <= most_vectors(R)) {
      return &conv_tile<R, decltype(vectors)::value>;
    } else {
      return nullptr;
    }
  };
  ((kernels.conv[R == 4 ? 2 : R - 1][T] = kernel(std::integral_constant<int, T + 1>())), ...);
}

inline const Int8Kernels& int8_kernels() {
  static const Int8Kernels kernels = [] {
    Int8Kernels made;
    made.float_target = kFloatTarget;
    made.lanes = kLanes;
    made.weight_words = kWeightWords;
    made.input_offset = kInputOffset;
    using Vectors = std::make_integer_sequence<int, kMaxInt8Vectors>;
    fill_conv<1>(made, Vectors());
    fill_conv<2>(made, Vectors());
    fill_conv<4>(made, Vectors());
    made.linear = &linear;
    made.quad_sums = &quad_sums;
    made.quantize = &quantize;
    made.add = &add;
    made.max = &max;
    made.blend = &blend;
    made.every_second = &every_second;
    made.dot_rounds = &dot_rounds;
    made.macs_per_round = kPeakSums * kVectorBytes;
    return made;
  }();
  return kernels;
}
