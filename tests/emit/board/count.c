/* Counts the instructions of a generated network, step by step: its code is included, and run with a clock. */
#include SOURCE
#include "board.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

#if JOIN(PREFIX, _TAKES_PIXELS)
static uint8_t in[JOIN(PREFIX, _INPUTS)];
#define NUMBER(i) (uint8_t)((i) % 256)
#else
static float in[JOIN(PREFIX, _INPUTS)];
#define NUMBER(i) (float)((i) % 255 - 127) / 64.0f
#endif
static float out[JOIN(PREFIX, _OUTPUTS)];
static uint32_t arena[(JOIN(PREFIX, _ARENA_BYTES) + 3) / 4];
static uint32_t ticks[sizeof steps / sizeof steps[0]];

static void count_step(const Step* step, const Memory* memory, int32_t y) {
  const uint32_t before = board_ticks();
  step->row(step, memory, y);
  ticks[step - steps] += (board_ticks() - before) & 0xFFFFFF;
}

int32_t board_main(void) {
  for (int32_t i = 0; i < JOIN(PREFIX, _INPUTS); ++i) in[i] = NUMBER(i);
  board_start_ticks();
  Memory memory;
  uint16_t next[sizeof steps / sizeof steps[0]] = {0};
  memory.in = in;
  memory.out = out;
  memory.arena = (element*)(void*)arena; /* of zeros, as the code in run() makes its begin */
  for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i) {
    count_step(&steps[order[i]], &memory, next[order[i]]++);
  }
  for (size_t s = 0; s < sizeof steps / sizeof steps[0]; ++s) {
    board_print_number(s);
    board_print(" ");
    board_print_number(ticks[s]);
    board_print("\n");
  }
  return 0;
}
