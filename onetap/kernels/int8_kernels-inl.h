// The kernels of int8 networks, written once and compiled once per target, inside its namespace. Whoever includes this
// has defined `ops`:
//   V            a vector of 32-bit sums: zero, set, load, store, add, sub, mul (the lower half), shift_left,
//                shift_right (arithmetic), high_product (the upper half), sum (of its lanes)
//   B            a vector of pixels, as they lie: load_bytes, load_some (the others 0), store_bytes, store_some,
//   as_bytes (of a V), byte (one
//                channel, as V), max, choose (by a mask), narrow (four V, clamped, into their quads), every_second
//   X, W         what a dot product takes: load_x, broadcast_w, load_w, dot
//   with INT8_PAIRS: load_pair (either half of numbers from a place of its own), dot_pairs (of 16-bit numbers, added)
//   with INT8_TWO_ROWS: load_two_rows, store_two_rows; every_second also serves strides of 2
//   rounded      floats over a scale, to the nearest integer and clamped; 0 for a NaN
// and kFloatTarget, kLanes, kWeightWords, kInputOffset, most_vectors, kQuadCost and, with INT8_PAIRS, kPairCost. No
// include guard: that is the point.

constexpr int64_t kVectorBytes = kLanes * kQuad;

// f(0) to f(N - 1), with indices that are constants from the start, so that arrays indexed by them are registers: GCC
// 12 unrolls loops only after it has put their arrays into memory.
template <typename F, int... I>
INT8_INLINE void unrolled(F&& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
template <int N, typename F>
INT8_INLINE void unrolled(F&& f) {
  unrolled(f, std::make_integer_sequence<int, N>());
}

// Pixels of a unit as they lie, and inputs of it.
template <Int8Source kSource>
INT8_INLINE ops::B load_pixels(const uint8_t* from, [[maybe_unused]] int64_t to_second_row) {
#if defined(INT8_TWO_ROWS)
  if constexpr (is_of_two_rows(kSource)) return ops::load_two_rows(from, to_second_row);
#endif
  return ops::load_bytes(from);
}
template <Int8Source kSource>
INT8_INLINE ops::X load_inputs(const uint8_t* from, [[maybe_unused]] int64_t to_second) {
#if defined(INT8_TWO_ROWS)
  if constexpr (is_strided(kSource)) return ops::every_second(ops::load_bytes(from), ops::load_bytes(from + to_second));
  if constexpr (kSource == Int8Source::kTwoRows) return ops::load_two_rows(from, to_second);
#endif
  return ops::load_x(from);
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

// What becomes of sums where floats leave, or where a factor is a quarter or more, and so rounds by the lower half of
// the product: number by number. `sums` are `outputs` times `vectors`, and replaced by the results if those are bytes.
// The first `first_row` pixels of a unit lie in one row.
__attribute__((noinline)) inline void finish_slowly(const Int8Tile& tile, const uint8_t* residual,
                                                    int64_t first_channel, int outputs, int vectors, int64_t first_row,
                                                    ops::V* sums) {
  for (int r = 0; r < outputs; ++r) {
    const int64_t channel = first_channel + r;
    const Int8Output& output = tile.outputs[channel];
    for (int t = 0; t < vectors; ++t) {
      const Int8Unit& unit = tile.units[t];
      ops::V& sum = sums[r * vectors + t];
      alignas(64) int32_t lanes[kLanes];
      ops::store(sum, lanes);
      if (tile.floats != nullptr) {
        if (channel >= tile.channels) continue;
        float* to = tile.floats + channel * tile.floats_plane + unit.y;
        for (int64_t i = 0; i < unit.pixels; ++i) to[i] = static_cast<float>(lanes[i]) * output.dequantize;
        continue;
      }
      for (int64_t i = 0; i < kLanes; ++i) {
        auto total = static_cast<uint32_t>(lanes[i]) << tile.left_shift;
        if (residual != nullptr) {
          const int64_t pixel = i < first_row ? i * kQuad : tile.y_row + (i - first_row) * kQuad;
          const int32_t addend = residual[unit.y + pixel + channel % kQuad] - tile.residual_zero;
          total += static_cast<uint32_t>(addend) * static_cast<uint32_t>(output.residual_factor);
        }
        lanes[i] = requantized(static_cast<int32_t>(total), output.requantize);
      }
      sum = ops::load(lanes);
    }
  }
}

// R outputs x T vectors of pixels in registers. Where fewer than four outputs read the same inputs, a quad is made of
// several such chunks, and stored when all of them are there.
template <Int8Source kSource, int R, int T>
void conv_tile(const Int8Tile& tile) {
  const uint8_t* x[T];
  unrolled<T>([&](auto t) INT8_LAMBDA { x[t] = tile.x + tile.units[t].x; });
  const int32_t* weights = tile.weights;
  const int32_t* offsets = tile.offsets;
  const int32_t* from = tile.from;
  uint8_t* y = tile.y;
  const uint8_t* residual = tile.residual;
  for (int64_t quad = 0; quad < tile.quads; ++quad) {
    ops::V sum[R][T], chunks[kQuad][T];
    for (int chunk = 0; chunk < kQuad / R; ++chunk, ++from) {
      const int first = R == kQuad ? 0 : chunk * R;
      const Int8Output* outputs = tile.outputs + quad * kQuad + first;
      unrolled<R>([&](auto r) INT8_LAMBDA {
        const ops::V start = ops::set(outputs[r].start);
        unrolled<T>([&](auto t) INT8_LAMBDA { sum[r][t] = start; });
      });
      for (int32_t entries = from[1] - from[0]; entries > 0; --entries) {
#if defined(INT8_PAIRS)
        if constexpr (kSource == Int8Source::kPairs) {
          const int64_t low = offsets[0], high = offsets[1];
          ops::V w[R];
          unrolled<R>([&](auto r) INT8_LAMBDA { w[r] = ops::set(weights[r]); });
          unrolled<T>([&](auto t) INT8_LAMBDA {
            const ops::V pixels = ops::load_pair(x[t] + low, x[t] + high);
            unrolled<R>([&](auto r) INT8_LAMBDA { sum[r][t] = ops::dot_pairs(sum[r][t], pixels, w[r]); });
          });
          offsets += 2;
          weights += R;
          continue;
        }
#endif
        const int64_t offset = *offsets++;
        ops::W w[R];
        unrolled<R>([&](auto r) INT8_LAMBDA { w[r] = ops::broadcast_w(weights + int64_t{r} * kWeightWords); });
        unrolled<T>([&](auto t) INT8_LAMBDA {
          const ops::X pixels = load_inputs<kSource>(x[t] + offset, tile.x_second);
          unrolled<R>([&](auto r) INT8_LAMBDA { sum[r][t] = ops::dot(sum[r][t], pixels, w[r]); });
        });
        weights += int64_t{R} * kWeightWords;
      }
      if (__builtin_expect(tile.is_slow, 0)) {
        ops::V copy[R * T];
        unrolled<R * T>([&](auto i) INT8_LAMBDA { copy[i] = sum[i / T][i % T]; });
        finish_slowly(tile, residual, quad * kQuad + first, R, T, is_of_two_rows(kSource) ? kLanes / 2 : kLanes, copy);
        unrolled<R * T>([&](auto i) INT8_LAMBDA { sum[i / T][i % T] = copy[i]; });
      } else {
        if (tile.left_shift != 0) {
          unrolled<R * T>([&](auto i)
                              INT8_LAMBDA { sum[i / T][i % T] = ops::shift_left(sum[i / T][i % T], tile.left_shift); });
        }
        if (residual != nullptr) {
          unrolled<R>([&](auto r) INT8_LAMBDA {
            const ops::V factor = ops::set(outputs[r].residual_factor);
            unrolled<T>([&](auto t) INT8_LAMBDA {
              const ops::V byte = ops::byte(load_pixels<kSource>(residual + tile.units[t].y, tile.y_row), first + r);
              sum[r][t] = ops::add(sum[r][t], ops::mul(byte, factor));
            });
            if (tile.residual_zero == 0) return;
            const ops::V zeros = ops::mul(ops::set(tile.residual_zero), factor);
            unrolled<T>([&](auto t) INT8_LAMBDA { sum[r][t] = ops::sub(sum[r][t], zeros); });
          });
        }
        unrolled<R>([&](auto r) INT8_LAMBDA {
          // As requantized(): with a shift above 32, what the lower half of the product could carry is shifted out.
          const ops::V rounding = ops::set(outputs[r].rounding);
          unrolled<T>([&](auto t) INT8_LAMBDA {
            const ops::V high = ops::high_product(sum[r][t], outputs[r].requantize.multiplier);
            sum[r][t] = ops::shift_right(ops::add(high, rounding), outputs[r].right_shift);
          });
        });
      }
      if constexpr (R < kQuad) {
        unrolled<R * T>([&](auto i) INT8_LAMBDA { chunks[first + i / T][i % T] = sum[i / T][i % T]; });
      }
    }
    if (__builtin_expect(tile.floats != nullptr, 0)) continue;
    unrolled<T>([&](auto t) INT8_LAMBDA {
      ops::B bytes;
      if constexpr (R == kQuad) {
        bytes = ops::narrow(sum[0][t], sum[1][t], sum[2][t], sum[3][t], tile.y_zero);
      } else {
        bytes = ops::narrow(chunks[0][t], chunks[1][t], chunks[2][t], chunks[3][t], tile.y_zero);
      }
#if defined(INT8_TWO_ROWS)
      if constexpr (is_of_two_rows(kSource)) return ops::store_two_rows(bytes, y + tile.units[t].y, tile.y_row);
#endif
      store_pixels(tile, tile.units[t], bytes, y + tile.units[t].y);
    });
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
  return pixels == kLanes ? ops::load_bytes(from) : ops::load_some(from, pixels);
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
  unrolled<kQuad>([&](auto c) INT8_LAMBDA { total[c] = ops::zero(); });
  for (int64_t row = 0; row < layout.height; ++row) {
    const uint8_t* x = quad + layout.pixel(row, 0);
    for (int64_t i = 0; i < layout.width; i += kLanes) {
      const ops::B bytes = load_some(x + i * kQuad, some_of(layout.width, i));
      unrolled<kQuad>([&](auto c) INT8_LAMBDA { total[c] = ops::add(total[c], ops::byte(bytes, c)); });
    }
  }
  unrolled<kQuad>([&](auto c) INT8_LAMBDA { sums[c] = ops::sum(total[c]); });
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
  for (int64_t i = 0; i < pixels; i += kLanes) {
    const int64_t some = some_of(pixels, i);
    const int64_t from = 2 * some - 1;  // the last one ends with a pixel that is wanted
    const uint8_t* low = x + 2 * i * kQuad;
    const ops::B first = load_some(low, std::min(kLanes, from));
    const ops::B second = from > kLanes ? load_some(low + kVectorBytes, from - kLanes) : ops::as_bytes(ops::zero());
    store_up_to(ops::every_second(first, second), y + i * kQuad, some);
  }
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

#if defined(INT8_PAIRS)
inline void expand(int64_t pixels, const uint8_t* quad, int64_t plane, uint8_t* to) {
  for (int64_t i = 0; i < pixels; i += kLanes) {
    const int64_t some = some_of(pixels, i);
    const ops::B bytes = load_some(quad + i * kQuad, some);
    unrolled<kQuad>([&](auto c) INT8_LAMBDA {
      const ops::V channel = ops::byte(bytes, c);
      store_up_to(ops::as_bytes(c % 2 == 0 ? channel : ops::shift_left(channel, 16)), to + c * plane + i * kQuad, some);
    });
  }
}
#endif

// Chunks of fewer outputs have kernels for some numbers of vectors alone: all of them would be a large program. Of
// expanded inputs, what more vectors read leaves the first cache.
constexpr bool has_kernel(Int8Source source, int outputs, int vectors) {
  const int most = source == Int8Source::kPairs ? std::min(most_vectors(outputs), 4) : most_vectors(outputs);
  return vectors <= most && (outputs == kQuad || vectors == most || (vectors & (vectors - 1)) == 0);
}

template <Int8Source kSource, int R>
void fill_conv(Int8Kernels& kernels) {
  unrolled<kMaxInt8Vectors>([&](auto t) {
    constexpr int kVectors = decltype(t)::value + 1;
    if constexpr (has_kernel(kSource, R, kVectors)) {
      kernels.conv[static_cast<int>(kSource)][R == kQuad ? 2 : R - 1][t] = &conv_tile<kSource, R, kVectors>;
    }
  });
}

inline const Int8Kernels& int8_kernels() {
  static const Int8Kernels kernels = [] {
    Int8Kernels made;
    made.float_target = kFloatTarget;
    made.lanes = kLanes;
    made.weight_words = kWeightWords;
    made.input_offset = kInputOffset;
    std::copy_n(kQuadCost, 3, made.cost[static_cast<int>(Int8Source::kQuads)]);
    fill_conv<Int8Source::kQuads, 1>(made);
    fill_conv<Int8Source::kQuads, 2>(made);
    fill_conv<Int8Source::kQuads, 4>(made);
#if defined(INT8_TWO_ROWS)
    fill_conv<Int8Source::kTwoRows, 4>(made);
    fill_conv<Int8Source::kStrided, 4>(made);
    fill_conv<Int8Source::kStridedTwoRows, 4>(made);
#endif
#if defined(INT8_PAIRS)
    fill_conv<Int8Source::kPairs, 1>(made);
    fill_conv<Int8Source::kPairs, 2>(made);
    fill_conv<Int8Source::kPairs, 4>(made);
    made.expand = &expand;
    std::copy_n(kPairCost, 3, made.cost[static_cast<int>(Int8Source::kPairs)]);
#endif
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
