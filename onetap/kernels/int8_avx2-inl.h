// AVX2 for int8_kernels-inl.h; INT8_DOT says whether it has dot products (AVX-VNNI).

constexpr const char* kFloatTarget = "avx2";
constexpr int64_t kLanes = 8;
constexpr int32_t kInputOffset = 0;

constexpr int most_vectors(int outputs) {
  return outputs == 4 ? 2 : outputs == 2 ? 4 : 6;
}

#if INT8_DOT
constexpr double kQuadCost[3] = {1.1, 1.3, 2.2};
constexpr double kPairCost[3] = {2.9, 3.2, 3.6};
#else
constexpr double kQuadCost[3] = {1.1, 2.1, 4.1};
constexpr double kPairCost[3] = {1.8, 1.9, 2.6};
#endif

namespace ops {

using V = __m256i;
using B = __m256i;

INT8_INLINE V zero() {
  return _mm256_setzero_si256();
}
INT8_INLINE V set(int32_t value) {
  return _mm256_set1_epi32(value);
}
INT8_INLINE V load(const int32_t* from) {
  return _mm256_load_si256(reinterpret_cast<const V*>(from));
}
INT8_INLINE void store(V v, int32_t* to) {
  _mm256_store_si256(reinterpret_cast<V*>(to), v);
}
INT8_INLINE V add(V a, V b) {
  return _mm256_add_epi32(a, b);
}
INT8_INLINE V sub(V a, V b) {
  return _mm256_sub_epi32(a, b);
}
INT8_INLINE V mul(V a, V b) {
  return _mm256_mullo_epi32(a, b);
}
INT8_INLINE V shift_left(V v, int count) {
  return _mm256_sll_epi32(v, _mm_cvtsi32_si128(count));
}
INT8_INLINE V shift_right(V v, int count) {
  return _mm256_sra_epi32(v, _mm_cvtsi32_si128(count));
}
INT8_INLINE V high_product(V v, int32_t factor) {
  const V by = set(factor);
  const V even = _mm256_mul_epi32(v, by), odd = _mm256_mul_epi32(_mm256_srli_epi64(v, 32), by);
  return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}
INT8_INLINE int32_t sum(V v) {
  const __m128i half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i pair = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 0xB1)));
}

INT8_INLINE B as_bytes(V v) {
  return v;
}
INT8_INLINE B load_bytes(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const B*>(from));
}
INT8_INLINE void store_bytes(B b, uint8_t* to) {
  _mm256_storeu_si256(reinterpret_cast<B*>(to), b);
}
INT8_INLINE B first_pixels(int64_t pixels) {
  return _mm256_cmpgt_epi32(set(static_cast<int32_t>(pixels)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INT8_INLINE B load_some(const uint8_t* from, int64_t pixels) {
  return _mm256_maskload_epi32(reinterpret_cast<const int*>(from), first_pixels(pixels));
}
INT8_INLINE void store_some(B b, uint8_t* to, int64_t pixels) {
  _mm256_maskstore_epi32(reinterpret_cast<int*>(to), first_pixels(pixels), b);
}
INT8_INLINE V byte(B b, int channel) {
  return _mm256_and_si256(_mm256_srl_epi32(b, _mm_cvtsi32_si128(8 * channel)), set(255));
}
INT8_INLINE B max(B a, B b) {
  return _mm256_max_epu8(a, b);
}
INT8_INLINE B choose(B mask, B a, B b) {
  return _mm256_blendv_epi8(b, a, mask);
}
INT8_INLINE B narrow(V a, V b, V c, V d, uint8_t zero_at) {
  const V offset = _mm256_set1_epi16(zero_at);
  const V ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), offset);
  const V cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), offset);
  const V least = _mm256_set1_epi8(zero_at != 0);
  const V planes = _mm256_max_epu8(_mm256_packus_epi16(ab, cd), least);
  return _mm256_shuffle_epi8(
      planes, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
}
INT8_INLINE B every_second(B a, B b) {
  const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xD8);
}
INT8_INLINE V rounded(const float* from, float scale, float least, float most) {
  const __m256 v = _mm256_div_ps(_mm256_loadu_ps(from), _mm256_set1_ps(scale));
  const __m256 number = _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_ORD_Q), v);
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(number, _mm256_set1_ps(least)), _mm256_set1_ps(most)));
}

INT8_INLINE V load_pair(const uint8_t* low, const uint8_t* high) {
  return _mm256_or_si256(load_bytes(low), load_bytes(high));
}
INT8_INLINE V dot_pairs(V sum, V pixels, V weights) {
#if INT8_DOT && defined(__clang__)
  return _mm256_dpwssd_avx_epi32(sum, pixels, weights);
#elif INT8_DOT
  __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(pixels), "x"(weights));  // as for AVX-512
  return sum;
#else
  return add(sum, _mm256_madd_epi16(pixels, weights));
#endif
}

#if INT8_DOT

using X = __m256i;
using W = __m256i;
INT8_INLINE X load_x(const uint8_t* from) {
  return load_bytes(from);
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return set(*words);
}
INT8_INLINE W load_w(const int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const W*>(from));
}
INT8_INLINE V dot(V sum, X x, W w) {
#if defined(__clang__)
  return _mm256_dpbusd_avx_epi32(sum, x, w);
#else
  // As for AVX-512.
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(w));
  return sum;
#endif
}

#else

// Bytes 0 and 2 of every pixel as 16-bit numbers, and bytes 1 and 3: nothing saturates.
struct X {
  __m256i even, odd;
};
using W = X;
INT8_INLINE X load_x(const uint8_t* from) {
  const B bytes = load_bytes(from);
  return {_mm256_and_si256(bytes, set(0x00FF00FF)), _mm256_srli_epi16(bytes, 8)};
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return {set(words[0]), set(words[1])};
}
INT8_INLINE W load_w(const int8_t* from) {
  const B bytes = _mm256_loadu_si256(reinterpret_cast<const B*>(from));
  return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
}
INT8_INLINE V dot(V sum, X x, W w) {
  return add(add(sum, _mm256_madd_epi16(x.even, w.even)), _mm256_madd_epi16(x.odd, w.odd));
}

#endif

}  // namespace ops
