/* Runs the self-test of a generated network with FUNCTION_PREFIX. */
#include "board.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
int JOIN(FUNCTION_PREFIX, _selftest)(void);

int32_t board_main(void) {
  return JOIN(FUNCTION_PREFIX, _selftest)();
}
