static void conv_single_u8(const Step* step, const Memory* memory, int32_t y) {
  conv_single(step, memory, y, 0);
}
