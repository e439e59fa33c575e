// SSE4.1 for int8_kernels-inl.h.

constexpr const char* kFloatTarget = "sse4";
constexpr int64_t kLanes = 4;
constexpr int32_t kInputOffset = 0;

constexpr int most_vectors(int outputs) {
  return outputs == 4 ? 2 : outputs == 2 ? 4 : 6;
}

constexpr double kQuadCost[3] = {1.1, 2.1, 4.1};
constexpr double kPairCost[3] = {1.3, 1.7, 2.8};

namespace ops {

using V = __m128i;
using B = __m128i;

INT8_INLINE V zero() {
  return _mm_setzero_si128();
}
INT8_INLINE V set(int32_t value) {
  return _mm_set1_epi32(value);
}
INT8_INLINE V load(const int32_t* from) {
  return _mm_load_si128(reinterpret_cast<const V*>(from));
}
INT8_INLINE void store(V v, int32_t* to) {
  _mm_store_si128(reinterpret_cast<V*>(to), v);
}
INT8_INLINE V add(V a, V b) {
  return _mm_add_epi32(a, b);
}
INT8_INLINE V sub(V a, V b) {
  return _mm_sub_epi32(a, b);
}
INT8_INLINE V mul(V a, V b) {
  return _mm_mullo_epi32(a, b);
}
INT8_INLINE V shift_left(V v, int count) {
  return _mm_sll_epi32(v, _mm_cvtsi32_si128(count));
}
INT8_INLINE V shift_right(V v, int count) {
  return _mm_sra_epi32(v, _mm_cvtsi32_si128(count));
}
INT8_INLINE V high_product(V v, int32_t factor) {
  const V by = set(factor);
  const V even = _mm_mul_epi32(v, by), odd = _mm_mul_epi32(_mm_srli_epi64(v, 32), by);
  return _mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xCC);
}
INT8_INLINE int32_t sum(V v) {
  const V pair = add(v, _mm_shuffle_epi32(v, 0x4E));
  return _mm_cvtsi128_si32(add(pair, _mm_shuffle_epi32(pair, 0xB1)));
}

INT8_INLINE B as_bytes(V v) {
  return v;
}
INT8_INLINE B load_bytes(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const B*>(from));
}
INT8_INLINE void store_bytes(B b, uint8_t* to) {
  _mm_storeu_si128(reinterpret_cast<B*>(to), b);
}
INT8_INLINE B load_some(const uint8_t* from, int64_t pixels) {
  alignas(16) uint8_t bytes[4 * kLanes] = {};
  std::memcpy(bytes, from, static_cast<size_t>(pixels * kQuad));
  return load_bytes(bytes);
}
INT8_INLINE void store_some(B b, uint8_t* to, int64_t pixels) {
  alignas(16) uint8_t bytes[4 * kLanes];
  store_bytes(b, bytes);
  std::memcpy(to, bytes, static_cast<size_t>(pixels * kQuad));
}
INT8_INLINE V byte(B b, int channel) {
  return _mm_and_si128(_mm_srl_epi32(b, _mm_cvtsi32_si128(8 * channel)), set(255));
}
INT8_INLINE B max(B a, B b) {
  return _mm_max_epu8(a, b);
}
INT8_INLINE B choose(B mask, B a, B b) {
  return _mm_blendv_epi8(b, a, mask);
}
INT8_INLINE B narrow(V a, V b, V c, V d, uint8_t zero_at) {
  const V offset = _mm_set1_epi16(zero_at);
  const V ab = _mm_adds_epi16(_mm_packs_epi32(a, b), offset), cd = _mm_adds_epi16(_mm_packs_epi32(c, d), offset);
  const V planes = _mm_max_epu8(_mm_packus_epi16(ab, cd), _mm_set1_epi8(zero_at != 0));
  return _mm_shuffle_epi8(planes, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
INT8_INLINE B every_second(B a, B b) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
}
INT8_INLINE V rounded(const float* from, float scale, float least, float most) {
  const __m128 v = _mm_div_ps(_mm_loadu_ps(from), _mm_set1_ps(scale));
  const __m128 number = _mm_and_ps(_mm_cmpord_ps(v, v), v);
  return _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(number, _mm_set1_ps(least)), _mm_set1_ps(most)));
}

INT8_INLINE V load_pair(const uint8_t* low, const uint8_t* high) {
  return _mm_or_si128(load_bytes(low), load_bytes(high));
}
INT8_INLINE V dot_pairs(V sum, V pixels, V weights) {
  return add(sum, _mm_madd_epi16(pixels, weights));
}

// Bytes 0 and 2 of every pixel as 16-bit numbers, and bytes 1 and 3: nothing saturates.
struct X {
  __m128i even, odd;
};
using W = X;
INT8_INLINE X load_x(const uint8_t* from) {
  const B bytes = load_bytes(from);
  return {_mm_and_si128(bytes, set(0x00FF00FF)), _mm_srli_epi16(bytes, 8)};
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return {set(words[0]), set(words[1])};
}
INT8_INLINE W load_w(const int8_t* from) {
  const B bytes = _mm_loadu_si128(reinterpret_cast<const B*>(from));
  return {_mm_srai_epi16(_mm_slli_epi16(bytes, 8), 8), _mm_srai_epi16(bytes, 8)};
}
INT8_INLINE V dot(V sum, X x, W w) {
  return add(add(sum, _mm_madd_epi16(x.even, w.even)), _mm_madd_epi16(x.odd, w.odd));
}

}  // namespace ops
