// Where a network that is still trained will be rounded once it is frozen and quantized: the values that the execution
// plan of its frozen form keeps, by the nodes of the trained network.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/train/fake_quant.h"

#include <map>
#include <string>
#include <vector>

namespace onetap {

// A value that an int8 network computes anew, with a scale. Copies and maxima of values have the scale of what they
// read, and are no places.
struct Int8Place {
  std::string value;  // its name in the frozen network
  std::string node;   // whose result it is in the trained one
  ByteRange range;
  // The places with which it has its scale in common, by index, itself included: a concatenation has one for all.
  std::vector<size_t> group;
  int64_t steps = 127;  // of the scale: what the largest magnitude of the group stands for
};

struct Int8Places {
  std::vector<Int8Place> values;
  // Layers with weights, by their node in the trained network, and the batch norm that is folded into each ("": none).
  std::map<std::string, std::string> layers;
  std::vector<std::string> affine;  // batch norms that stay, as layers of one weight per channel
};

// kUsage if an op of the network has no int8 form.
Int8Places int8_places(const Graph& trained);

}  // namespace onetap
