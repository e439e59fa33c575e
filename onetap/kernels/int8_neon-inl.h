// 64-bit ARM for int8_kernels-inl.h; INT8_DOT says whether it has dot products (FEAT_DotProd). They multiply signed
// bytes, so 128 is taken off the inputs; without them a product is then at most 128 * 127, and two of them fit 16 bits.

constexpr const char* kFloatTarget = "neon";
constexpr int64_t kLanes = 4;
constexpr int32_t kInputOffset = 128;

constexpr int most_vectors(int outputs) {
  return outputs == 4 ? 4 : kMaxInt8Vectors;
}

constexpr double kQuadCost[3] = {1.1, 1.3, 2.2};

namespace ops {

using V = int32x4_t;
using B = uint8x16_t;
using X = int8x16_t;
using W = int8x16_t;

INT8_INLINE V zero() {
  return vdupq_n_s32(0);
}
INT8_INLINE V set(int32_t value) {
  return vdupq_n_s32(value);
}
INT8_INLINE V load(const int32_t* from) {
  return vld1q_s32(from);
}
INT8_INLINE void store(V v, int32_t* to) {
  vst1q_s32(to, v);
}
INT8_INLINE V add(V a, V b) {
  return vaddq_s32(a, b);
}
INT8_INLINE V sub(V a, V b) {
  return vsubq_s32(a, b);
}
INT8_INLINE V mul(V a, V b) {
  return vmulq_s32(a, b);
}
INT8_INLINE V shift_left(V v, int count) {
  return vshlq_s32(v, set(count));
}
INT8_INLINE V shift_right(V v, int count) {
  return vshlq_s32(v, set(-count));
}
INT8_INLINE V high_product(V v, int32_t factor) {
  const int64x2_t low = vmull_n_s32(vget_low_s32(v), factor), high = vmull_n_s32(vget_high_s32(v), factor);
  return vuzp2q_s32(vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));
}
INT8_INLINE int32_t sum(V v) {
  return vaddvq_s32(v);
}

INT8_INLINE B as_bytes(V v) {
  return vreinterpretq_u8_s32(v);
}
INT8_INLINE B load_bytes(const uint8_t* from) {
  return vld1q_u8(from);
}
INT8_INLINE void store_bytes(B b, uint8_t* to) {
  vst1q_u8(to, b);
}
INT8_INLINE B load_some(const uint8_t* from, int64_t pixels) {
  alignas(16) uint8_t bytes[4 * kLanes] = {};
  std::memcpy(bytes, from, static_cast<size_t>(pixels * kQuad));
  return load_bytes(bytes);
}
INT8_INLINE void store_some(B b, uint8_t* to, int64_t pixels) {
  uint8_t bytes[4 * kLanes];
  store_bytes(b, bytes);
  std::memcpy(to, bytes, static_cast<size_t>(pixels * kQuad));
}
INT8_INLINE V byte(B b, int channel) {
  const uint32x4_t shifted = vshlq_u32(vreinterpretq_u32_u8(b), set(-8 * channel));
  return vreinterpretq_s32_u32(vandq_u32(shifted, vdupq_n_u32(255)));
}
INT8_INLINE B max(B a, B b) {
  return vmaxq_u8(a, b);
}
INT8_INLINE B choose(B mask, B a, B b) {
  return vbslq_u8(mask, a, b);
}
INT8_INLINE B narrow(V a, V b, V c, V d, uint8_t zero_at) {
  static const uint8_t kTransposed[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const int16x8_t offset = vdupq_n_s16(zero_at);
  const int16x8_t ab = vqaddq_s16(vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)), offset);
  const int16x8_t cd = vqaddq_s16(vcombine_s16(vqmovn_s32(c), vqmovn_s32(d)), offset);
  const B planes = vcombine_u8(vqmovun_s16(ab), vqmovun_s16(cd));
  return vqtbl1q_u8(vmaxq_u8(planes, vdupq_n_u8(zero_at != 0)), vld1q_u8(kTransposed));
}
INT8_INLINE B every_second(B a, B b) {
  return vreinterpretq_u8_u32(vuzp1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
// A NaN comes through minimum and maximum, and is 0 as an integer.
INT8_INLINE V rounded(const float* from, float scale, float least, float most) {
  const float32x4_t v = vdivq_f32(vld1q_f32(from), vdupq_n_f32(scale));
  return vcvtnq_s32_f32(vminq_f32(vmaxq_f32(v, vdupq_n_f32(least)), vdupq_n_f32(most)));
}

INT8_INLINE X load_x(const uint8_t* from) {
  return vreinterpretq_s8_u8(veorq_u8(load_bytes(from), vdupq_n_u8(0x80)));
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return vreinterpretq_s8_s32(vld1q_dup_s32(words));
}
INT8_INLINE W load_w(const int8_t* from) {
  return vld1q_s8(from);
}
INT8_INLINE V dot(V sum, X x, W w) {
#if INT8_DOT
  return vdotq_s32(sum, x, w);
#else
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
  return vpadalq_s16(sum, vpaddq_s16(low, high));
#endif
}

}  // namespace ops
