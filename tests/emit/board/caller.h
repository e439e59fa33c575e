/* What a program gives a generated network whose header or code is included before: its input, output and arena. PREFIX
   is that of its constants. */
#ifndef CALLER_H
#define CALLER_H

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

static void fill_input(void) {
  for (int32_t i = 0; i < JOIN(PREFIX, _INPUTS); ++i) in[i] = NUMBER(i);
}

#endif
