static void conv_blocks_u8(const Step* step, const Memory* memory, int32_t y) {
  conv_words(step, memory, y, 0, 0);
}
