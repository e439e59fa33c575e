// The int8 kernels in plain C++: for CPUs, and builds, without anything better.
#include "onetap/kernels/int8_targets.h"

#include <cmath>

#define INT8_IN_REGISTER(v) "+m"(v)

namespace onetap::int8_plain {
namespace {

constexpr const char* kFloatTarget = "plain";
constexpr int64_t kLanes = 4;
constexpr int kWeightWords = 1;
constexpr int32_t kInputOffset = 0;

// Four would be 6 % faster with share 1 alone, and take 30 kB of a program for devices.
constexpr int most_vectors(int /*outputs*/) {
  return 2;
}

constexpr double kQuadCost[3] = {1.1, 1.3, 2.2};

namespace ops {

// Sums wrap around, as those of vectors do.
using V = uint32_t __attribute__((vector_size(16)));
using Signed = int32_t __attribute__((vector_size(16)));
using B = uint8_t __attribute__((vector_size(16)));
using X = B;
using W = int8_t __attribute__((vector_size(16)));

template <typename Vector, typename T>
INT8_INLINE Vector load_vector(const T* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

INT8_INLINE V zero() {
  return V{};
}
INT8_INLINE V set(int32_t value) {
  return V{} + static_cast<uint32_t>(value);
}
INT8_INLINE V load(const int32_t* from) {
  return load_vector<V>(from);
}
INT8_INLINE void store(V v, int32_t* to) {
  std::memcpy(to, &v, sizeof v);
}
INT8_INLINE V add(V a, V b) {
  return a + b;
}
INT8_INLINE V sub(V a, V b) {
  return a - b;
}
INT8_INLINE V mul(V a, V b) {
  return a * b;
}
INT8_INLINE V shift_left(V v, int count) {
  return v << count;
}
INT8_INLINE V shift_right(V v, int count) {
  return reinterpret_cast<V>(reinterpret_cast<Signed>(v) >> count);
}
INT8_INLINE V high_product(V v, int32_t factor) {
  const auto lanes = reinterpret_cast<Signed>(v);
  V high;
  for (int i = 0; i < kLanes; ++i) high[i] = static_cast<uint32_t>((static_cast<int64_t>(lanes[i]) * factor) >> 32);
  return high;
}
INT8_INLINE int32_t sum(V v) {
  return static_cast<int32_t>(v[0] + v[1] + v[2] + v[3]);
}

INT8_INLINE B as_bytes(V v) {
  return reinterpret_cast<B>(v);
}
INT8_INLINE B load_bytes(const uint8_t* from) {
  return load_vector<B>(from);
}
INT8_INLINE void store_bytes(B b, uint8_t* to) {
  std::memcpy(to, &b, sizeof b);
}
INT8_INLINE B load_some(const uint8_t* from, int64_t pixels) {
  alignas(16) uint8_t bytes[4 * kLanes] = {};
  std::memcpy(bytes, from, static_cast<size_t>(pixels * kQuad));
  return load_bytes(bytes);
}
INT8_INLINE void store_some(B b, uint8_t* to, int64_t pixels) {
  std::memcpy(to, &b, static_cast<size_t>(pixels * kQuad));
}
// Pixel by pixel, in the order of their bytes: numbers of 32 bits would turn around where bytes do.
INT8_INLINE V byte(B b, int channel) {
  return V{b[channel], b[4 + channel], b[8 + channel], b[12 + channel]};
}
INT8_INLINE B max(B a, B b) {
  return a > b ? a : b;
}
INT8_INLINE B choose(B mask, B a, B b) {
  return (mask & a) | (~mask & b);
}
INT8_INLINE B narrow(V a, V b, V c, V d, uint8_t zero_at) {
  const int32_t least = zero_at != 0 ? -127 : 0, most = zero_at != 0 ? 127 : 255;
  const V quad[kQuad] = {a, b, c, d};
  B bytes;
  for (int channel = 0; channel < kQuad; ++channel) {
    const auto lanes = reinterpret_cast<Signed>(quad[channel]);
    for (int i = 0; i < kLanes; ++i) {
      bytes[i * kQuad + channel] = static_cast<uint8_t>(std::clamp(lanes[i], least, most) + zero_at);
    }
  }
  return bytes;
}
INT8_INLINE B every_second(B a, B b) {
  const auto low = reinterpret_cast<V>(a), high = reinterpret_cast<V>(b);
  return reinterpret_cast<B>(V{low[0], low[2], high[0], high[2]});
}
INT8_INLINE V rounded(const float* from, float scale, float least, float most) {
  V v;
  for (int i = 0; i < kLanes; ++i) {
    const float number = std::isnan(from[i]) ? 0.0f : std::clamp(from[i] / scale, least, most);
    v[i] = static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(number)));
  }
  return v;
}

INT8_INLINE X load_x(const uint8_t* from) {
  return load_bytes(from);
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return reinterpret_cast<W>(set(*words));
}
INT8_INLINE W load_w(const int8_t* from) {
  return load_vector<W>(from);
}
INT8_INLINE V dot(V total, X x, W w) {
  for (int i = 0; i < kLanes; ++i) {
    int32_t products = 0;
    for (int c = 0; c < kQuad; ++c) products += int32_t{x[i * kQuad + c]} * w[i * kQuad + c];
    total[i] += static_cast<uint32_t>(products);
  }
  return total;
}

}  // namespace ops

#include "onetap/kernels/int8_kernels-inl.h"

}  // namespace
}  // namespace onetap::int8_plain

namespace onetap {

const KernelSet& plain_int8_kernels() {
  static const KernelSet set = int8_kernel_set("plain", int8_plain::int8_kernels());
  return set;
}

}  // namespace onetap
