/* A value between two steps: rows of pixels, the channels of a pixel together. */
typedef struct {
  uint32_t offset;        /* elements from the arena's begin to row 0 */
  uint16_t height, width; /* a vector is one pixel */
  uint16_t channels;      /* elements from a pixel to the next */
  uint16_t rows;          /* rows that are kept: row y lies where row y % rows does */
  uint8_t is_signed;      /* bytes of -127 to 127, not of 0 to 255 */
} Value;
