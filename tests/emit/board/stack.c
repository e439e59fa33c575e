/* Prints how many bytes of the stack a run of a generated network takes. */
#include HEADER
#include "board.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define MOST 16384 /* bytes that are watched */
#define POISON 0xA5A5A5A5u

#if JOIN(PREFIX, _TAKES_PIXELS)
static uint8_t in[JOIN(PREFIX, _INPUTS)];
#define NUMBER(i) (uint8_t)((i) % 256)
#else
static float in[JOIN(PREFIX, _INPUTS)];
#define NUMBER(i) (float)((i) % 255 - 127) / 64.0f
#endif
static float out[JOIN(PREFIX, _OUTPUTS)];
static uint32_t arena[(JOIN(PREFIX, _ARENA_BYTES) + 3) / 4];

int32_t board_main(void) {
  uint32_t sp;
  __asm__ volatile("mov %0, sp" : "=r"(sp));
  volatile uint32_t *const top = (volatile uint32_t*)sp, *const bottom = top - MOST / 4;
  for (int32_t i = 0; i < JOIN(PREFIX, _INPUTS); ++i) in[i] = NUMBER(i);
  for (volatile uint32_t* at = bottom; at < top; ++at) *at = POISON;
  JOIN(FUNCTION_PREFIX, _run)(in, out, arena);
  volatile uint32_t* at = bottom;
  while (at < top && *at == POISON) ++at;
  board_print_number((uint32_t)(top - at) * 4);
  board_print("\n");
  return at == bottom;
}
