/* What a Cortex-M needs to run a function: vectors, memory set up, the result handed to the emulator by semihosting. */
#include "board.h"

#include <stdint.h>

extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[], stack_end[];

static int32_t semihost(int32_t operation, const void* argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_print(const char* text) {
  semihost(0x04, text);
}

void board_exit(int32_t code) {
  const int32_t block[2] = {0x20026, code}; /* ADP_Stopped_ApplicationExit */
  semihost(0x20, block);
  for (;;) {
  }
}

void board_print_number(uint32_t number) {
  char digits[12];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  board_print(at);
}

/* SysTick counts down at the processor's 25 or 32 MHz; with -icount shift=0 an instruction takes one nanosecond. */
void board_start_ticks(void) {
  *(volatile uint32_t*)0xE000E014u = 0xFFFFFF;
  *(volatile uint32_t*)0xE000E018u = 0;
  *(volatile uint32_t*)0xE000E010u = 5;
}

uint32_t board_ticks(void) {
  return (0xFFFFFF - *(volatile uint32_t*)0xE000E018u) & 0xFFFFFF;
}

static void reset(void) {
  for (uint32_t *from = data_from, *to = data_begin; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t*)0xE000ED88u |= 0xFu << 20; /* CPACR: floating point and vectors */
  __asm__ volatile("dsb\n isb");
#endif
  board_exit(board_main());
}

static void fault(void) {
  board_print("fault\n");
  board_exit(99);
}

typedef union {
  const void* stack;
  void (*handler)(void);
} Vector;

extern const Vector vectors[7];
__attribute__((section(".vectors"), used))
const Vector vectors[7] = {{stack_end},        {.handler = reset}, {.handler = fault}, {.handler = fault},
                           {.handler = fault}, {.handler = fault}, {.handler = fault}};
