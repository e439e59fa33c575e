static void conv_single_s8(const Step* step, const Memory* memory, int32_t y) {
  conv_any(step, memory, y, 1);
}
