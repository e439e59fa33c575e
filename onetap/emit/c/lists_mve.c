#ifdef VECTORS
/* Where the inputs of an output lie, words or bytes, in the order of its weights: from the arena's begin to each, for
   two pixels. Those of empty taps are left out. */
typedef struct {
  int32_t place[2][LIST];
  int32_t count;
  const uint8_t* codes; /* that it was made from, or none */
} List;

/* Reads of vectors at given places must see what was stored one by one. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* Twice the positions of four blocks, or fewer. */
INLINE uint32x4_t four_codes(const uint8_t* codes, int32_t code, mve_pred16_t some) {
#if CODE_BITS == 4
  const uint32x4_t byte = {0, 0, 1, 1};
  const int32x4_t left = {1, -3, 1, -3};
  return vandq_u32(vshlq_u32(vldrbq_gather_offset_z_u32(codes + (code >> 1), byte, some), left), vdupq_n_u32(30));
#else
  return vshlq_n_u32(vldrbq_z_u32(codes + code, some), 1);
#endif
}

/* Blocks of one word or one byte (`unit`), with one position each: four at a time. */
INLINE void list_units(List* list, const Conv* conv, const Taps* taps, const uint8_t* codes, int32_t unit) {
  const int32_t *place0 = &taps->place[0][0], *place1 = &taps->place[0][1];
  int32_t* to = list->place[0];
  int32x4_t channel = vreinterpretq_s32_u32(vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)unit));
  for (int32_t code = 0; code < conv->blocks; code += 4) {
    mve_pred16_t some = vctp32q((uint32_t)(conv->blocks - code));
    const uint32x4_t position = four_codes(codes, code, some);
    if (HAS_EMPTY) {
      const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
      some = vcmpltq_m_n_s32(vreinterpretq_s32_u32(position), 2 * positions, some);
    }
    const int32x4_t at0 = vaddq_s32(vldrwq_gather_shifted_offset_z_s32(place0, position, some), channel);
    const int32x4_t at1 = vaddq_s32(vldrwq_gather_shifted_offset_z_s32(place1, position, some), channel);
    if (HAS_EMPTY) {
      /* The n-th group of four bits: how many of the lanes before it are there. */
      const uint32_t before = (some & 0x1111u) * 0x11110u;
      const int32x4_t right = {0, -4, -8, -12};
      const uint32x4_t lane = vandq_u32(vshlq_u32(vdupq_n_u32(before), right), vdupq_n_u32(3));
      vstrwq_scatter_shifted_offset_p_s32(to, lane, at0, some);
      vstrwq_scatter_shifted_offset_p_s32(to + LIST, lane, at1, some);
      to += before >> 16 & 15;
    } else {
      vst1q_s32(to, at0);
      vst1q_s32(to + LIST, at1);
      to += 4;
    }
    channel = vaddq_n_s32(channel, 4 * unit);
  }
  list->count = HAS_EMPTY ? (int32_t)(to - list->place[0]) : conv->blocks;
}

/* Any blocks. */
static void list_blocks(List* list, const Conv* conv, const Taps* taps, const uint8_t* codes, int32_t unit) {
  const int32_t positions = conv->window.kernel_h * conv->window.kernel_w;
  int32_t code = 0;
  list->count = 0;
  for (int32_t begin = 0; begin < conv->inputs; begin += conv->block_inputs) {
    const int32_t rest = conv->inputs - begin;
    const int32_t end = begin + (rest < conv->block_inputs ? rest : conv->block_inputs);
    for (int32_t tap = 0; tap < conv->taps; ++tap, ++code) {
      const int32_t position = code_at(codes, code);
      if (position >= positions) continue; /* empty */
      for (int32_t c = begin; c < end; c += unit, ++list->count) {
        list->place[0][list->count] = taps->place[position][0] + c;
        list->place[1][list->count] = taps->place[position][1] + c;
      }
    }
  }
}

/* All positions in order, one word each. */
INLINE void list_positions(List* list, const Taps* taps, int32_t positions) {
  for (int32_t position = 0; position < positions; ++position) {
    list->place[0][position] = taps->place[position][0];
    list->place[1][position] = taps->place[position][1];
  }
  list->count = positions;
  BARRIER();
}

/* Makes the list of an output with these positions, or keeps it: list->codes is NULL where taps are new. */
INLINE void make_list(List* list, const Conv* conv, const Taps* taps, const uint8_t* codes, int32_t unit) {
  if (list->codes == codes) return;
  list->codes = codes;
  if (conv->block_inputs == unit && conv->taps == 1) {
    list_units(list, conv, taps, codes, unit);
  } else {
    list_blocks(list, conv, taps, codes, unit);
  }
  BARRIER();
}
#endif
