// AVX-512 for int8_kernels-inl.h; INT8_DOT says whether it has dot products (VNNI).

constexpr const char* kFloatTarget = "avx512";
constexpr int64_t kLanes = 16;
constexpr int32_t kInputOffset = 0;

// Five vectors are the 8x8 pixels of a CIFAR network's last stage. Six are no faster.
constexpr int most_vectors(int outputs) {
  return outputs == 4 ? (INT8_DOT ? 5 : 4) : kMaxInt8Vectors;
}

#if INT8_DOT
constexpr double kQuadCost[3] = {1.1, 1.3, 2.2};
#else
constexpr double kQuadCost[3] = {1.1, 2.1, 4.1};
constexpr double kPairCost[3] = {2.1, 3.7, 5.0};
#endif

namespace ops {

using V = __m512i;
using B = __m512i;

INT8_INLINE V zero() {
  return _mm512_setzero_si512();
}
INT8_INLINE V set(int32_t value) {
  return _mm512_set1_epi32(value);
}
INT8_INLINE V load(const int32_t* from) {
  return _mm512_load_si512(from);
}
INT8_INLINE void store(V v, int32_t* to) {
  _mm512_store_si512(to, v);
}
INT8_INLINE V add(V a, V b) {
  return _mm512_add_epi32(a, b);
}
INT8_INLINE V sub(V a, V b) {
  return _mm512_sub_epi32(a, b);
}
INT8_INLINE V mul(V a, V b) {
  return _mm512_mullo_epi32(a, b);
}
// By a vector of counts: shifting by a count in a register takes twice the work.
INT8_INLINE V shift_left(V v, int count) {
  return _mm512_sllv_epi32(v, set(count));
}
INT8_INLINE V shift_right(V v, int count) {
  return _mm512_srav_epi32(v, set(count));
}
INT8_INLINE V high_product(V v, int32_t factor) {
  const V by = set(factor);
  const V even = _mm512_mul_epi32(v, by), odd = _mm512_mul_epi32(_mm512_srli_epi64(v, 32), by);
  return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}
INT8_INLINE int32_t sum(V v) {
  return _mm512_reduce_add_epi32(v);
}

INT8_INLINE B as_bytes(V v) {
  return v;
}
INT8_INLINE B load_bytes(const uint8_t* from) {
  return _mm512_loadu_si512(from);
}
INT8_INLINE void store_bytes(B b, uint8_t* to) {
  _mm512_storeu_si512(to, b);
}
// Half a vector, and as much of the next row.
INT8_INLINE B load_two_rows(const uint8_t* from, int64_t to_second_row) {
  const auto* rows = reinterpret_cast<const __m256i*>(from);
  const auto* second = reinterpret_cast<const __m256i*>(from + to_second_row);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(rows)), _mm256_loadu_si256(second), 1);
}
INT8_INLINE void store_two_rows(B b, uint8_t* to, int64_t to_second_row) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + to_second_row), _mm512_extracti64x4_epi64(b, 1));
}
INT8_INLINE B load_some(const uint8_t* from, int64_t pixels) {
  return _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << pixels) - 1), from);
}
INT8_INLINE void store_some(B b, uint8_t* to, int64_t pixels) {
  _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1u << pixels) - 1), b);
}
INT8_INLINE V byte(B b, int channel) {
  if (channel == 0) return _mm512_and_si512(b, set(255));
  if (channel == 3) return _mm512_srli_epi32(b, 24);
  return _mm512_and_si512(channel == 1 ? _mm512_srli_epi32(b, 8) : _mm512_srli_epi32(b, 16), set(255));
}
INT8_INLINE B max(B a, B b) {
  return _mm512_max_epu8(a, b);
}
INT8_INLINE B choose(B mask, B a, B b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}
INT8_INLINE B narrow(V a, V b, V c, V d, uint8_t zero_at) {
  V ab = _mm512_packs_epi32(a, b), cd = _mm512_packs_epi32(c, d);
  if (zero_at != 0) {
    const V offset = _mm512_set1_epi16(zero_at);
    ab = _mm512_adds_epi16(ab, offset);
    cd = _mm512_adds_epi16(cd, offset);
  }
  V planes = _mm512_packus_epi16(ab, cd);
  if (zero_at != 0) planes = _mm512_max_epu8(planes, _mm512_set1_epi8(1));
  return _mm512_shuffle_epi8(
      planes, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
}
INT8_INLINE B every_second(B a, B b) {
  const V from = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_epi32(a, from, b);
}
INT8_INLINE V rounded(const float* from, float scale, float least, float most) {
  const __m512 v = _mm512_div_ps(_mm512_loadu_ps(from), _mm512_set1_ps(scale));
  const __m512 number = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(number, _mm512_set1_ps(least)), _mm512_set1_ps(most)));
}

INT8_INLINE V load_pair(const uint8_t* low, const uint8_t* high) {
  return _mm512_or_si512(_mm512_loadu_si512(low), _mm512_loadu_si512(high));
}
INT8_INLINE V dot_pairs(V sum, V pixels, V weights) {
  return add(sum, _mm512_madd_epi16(pixels, weights));
}

#if INT8_DOT

using X = __m512i;
using W = __m512i;
INT8_INLINE X load_x(const uint8_t* from) {
  return load_bytes(from);
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return set(*words);
}
INT8_INLINE W load_w(const int8_t* from) {
  return _mm512_loadu_si512(from);
}
INT8_INLINE V dot(V sum, X x, W w) {
#if defined(__clang__)
  return _mm512_dpbusd_epi32(sum, x, w);
#else
  // GCC 12 copies every sum before and after its own form of this: whole networks then take half as long again.
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
  return sum;
#endif
}

#else

// Bytes 0 and 2 of every pixel as 16-bit numbers, and bytes 1 and 3: nothing saturates.
struct X {
  __m512i even, odd;
};
using W = X;
INT8_INLINE X load_x(const uint8_t* from) {
  const B bytes = load_bytes(from);
  return {_mm512_and_si512(bytes, set(0x00FF00FF)), _mm512_srli_epi16(bytes, 8)};
}
INT8_INLINE W broadcast_w(const int32_t* words) {
  return {set(words[0]), set(words[1])};
}
INT8_INLINE W load_w(const int8_t* from) {
  const B bytes = _mm512_loadu_si512(from);
  return {_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8), _mm512_srai_epi16(bytes, 8)};
}
INT8_INLINE V dot(V sum, X x, W w) {
  return add(add(sum, _mm512_madd_epi16(x.even, w.even)), _mm512_madd_epi16(x.odd, w.odd));
}

#endif

}  // namespace ops
