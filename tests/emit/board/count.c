/* Counts the instructions of a generated network, step by step: its code is included, and run with a clock. */
#include SOURCE
#include "board.h"
#include "caller.h"

static uint32_t ticks[sizeof steps / sizeof steps[0]];

static void count_step(const Step* step, const Memory* memory, int32_t y) {
  const uint32_t before = board_ticks();
  step->row(step, memory, y);
  ticks[step - steps] += (board_ticks() - before) & 0xFFFFFF;
}

int32_t board_main(void) {
  fill_input();
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
