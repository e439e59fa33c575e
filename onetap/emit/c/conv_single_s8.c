static void conv_single_s8(const Step* step, const Memory* memory, int32_t y) {
  conv_single(step, memory, y, 1);
}
