/* Prints how many bytes of the stack a run of a generated network takes. */
#include HEADER
#include "board.h"
#include "caller.h"

#define MOST 16384 /* bytes that are watched */
#define POISON 0xA5A5A5A5u

int32_t board_main(void) {
  uint32_t sp;
  __asm__ volatile("mov %0, sp" : "=r"(sp));
  volatile uint32_t *const top = (volatile uint32_t*)sp, *const bottom = top - MOST / 4;
  fill_input();
  for (volatile uint32_t* at = bottom; at < top; ++at) *at = POISON;
  JOIN(FUNCTION_PREFIX, _run)(in, out, arena);
  volatile uint32_t* at = bottom;
  while (at < top && *at == POISON) ++at;
  board_print_number((uint32_t)(top - at) * 4);
  board_print("\n");
  return at == bottom;
}
