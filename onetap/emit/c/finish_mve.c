#ifdef VECTORS
/* requantize() of four: one half is in the lower 32 bits of the product where there is no shift, else above them. */
INLINE int32x4_t requantize_four(int32x4_t x, int32x4_t multiplier, int32x4_t shift) {
  const mve_pred16_t no_shift = vcmpeqq_n_s32(shift, 0);
  const int32x4_t high = vpselq_s32(vrmulhq_s32(x, multiplier), vmulhq_s32(x, multiplier), no_shift);
  return vrshlq_s32(high, vnegq_s32(shift));
}

/* What becomes of the sums of outputs d to end - 1, at most four: [pixel][output]. Adds what they start from. */
static void finish(const Conv* conv, const Target* target, int32_t d, int32_t end, const int32_t* sums) {
  const int32_t pixels = target->to[0] == target->to[1] ? 1 : 2;
  const mve_pred16_t some = vctp32q((uint32_t)(end - d));
  const int32x4_t start = conv->start != NULL ? vldrwq_z_s32(conv->start + d, some) : vdupq_n_s32(0);
  if (conv->dequantize != NULL) {
    int32_t totals[4];
    for (int32_t pixel = 0; pixel < pixels; ++pixel) {
      vst1q_s32(totals, vaddq_s32(vld1q_s32(sums + 4 * pixel), start));
      for (int32_t i = 0; i < end - d; ++i) {
        target->out[pixel][(d + i) * target->plane] = (float)totals[i] * conv->dequantize[d + i];
      }
    }
    return;
  }
  const Scale* scales = conv->scales;
  const uint32x4_t scale = vmulq_n_u32(vldrbq_z_u32(conv->scale_of + d, some), sizeof(Scale));
  const int32x4_t multiplier = vldrwq_gather_offset_z_s32(&scales->multiplier, scale, some);
  const int32x4_t addend_factor = vldrwq_gather_offset_z_s32(&scales->addend, scale, some);
  const int32x4_t shift = vaddq_n_s32(vldrwq_gather_offset_z_s32(&scales->shift_less_1, scale, some), 1);
  const int32x4_t least = vdupq_n_s32(target->is_signed ? -127 : 0), most = vdupq_n_s32(target->is_signed ? 127 : 255);
  for (int32_t pixel = 0; pixel < pixels; ++pixel) {
    int32x4_t x = vshlq_r_s32(vaddq_s32(vld1q_s32(sums + 4 * pixel), start), conv->left_shift);
    if (target->addend[pixel] != NULL) {
      const uint8_t* from = target->addend[pixel] + d;
      const int32x4_t addend = target->addend_signed ? vldrbq_z_s32((const int8_t*)from, some)
                                                     : vreinterpretq_s32_u32(vldrbq_z_u32(from, some));
      x = vaddq_s32(x, vmulq_s32(addend, addend_factor));
    }
    x = vminq_s32(vmaxq_s32(requantize_four(x, multiplier, shift), least), most);
    vstrbq_p_u32(target->to[pixel] + d, vreinterpretq_u32_s32(x), some);
  }
}
#endif
