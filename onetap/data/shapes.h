// `shapes`: a built-in, seeded, procedurally drawn ten-class set of 32x32 colour images.
//
// Colours, background and the area of the figure are drawn independently of the class, so counting colours
// (all that a network of 1x1 convolutions can do) tells nothing; edges and corners tell everything.
#pragma once

#include "onetap/data/dataset.h"

namespace onetap {

struct ShapesOptions {
  int64_t train = 10000;
  int64_t test = 2000;
  uint64_t seed = 0;  // of the drawings; the training seed does not change the data
};

DataSource open_shapes(const ShapesOptions& options = {});

// Draws image `index` of one split; the class is index % 10.
void draw_shape(uint64_t seed, bool test, int64_t index, Image& image);

}  // namespace onetap
