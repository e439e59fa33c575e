static inline int32_t byte_value(uint8_t byte, int32_t is_signed) {
  const int32_t sign = is_signed << 7;
  return ((int32_t)byte ^ sign) - sign;
}

static inline uint8_t clamp_byte(int32_t x, int32_t is_signed) {
  const int32_t least = is_signed ? -127 : 0, most = is_signed ? 127 : 255;
  return (uint8_t)(x < least ? least : x > most ? most : x);
}
