#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

int32_t board_main(void); /* what runs; its result is the emulator's exit code */

void board_print(const char* text);
void board_print_number(uint32_t number);
void board_exit(int32_t code);
void board_start_ticks(void);
uint32_t board_ticks(void);

#endif
