// The architectures that come with onetap, by name.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// What a zoo network is built from; unset values take the architecture's own default.
struct NetSpec {
  std::string arch = "resnet20";
  std::optional<int64_t> width;      // channels of the first stage
  std::optional<int64_t> kernel;     // 3 or 5
  std::optional<int64_t> expansion;  // channels within a block of shift networks, in parts of its outputs
  char shortcut = 'B';               // 'A': subsample and zero-pad, 'B': 1x1 convolution and batch norm
  int64_t classes = 10;
  std::optional<Shape> image;  // C, H, W
};

struct ZooEntry {
  const char* name;  // as typed, or a pattern such as "resnet<6n+2>"
  const char* summary;
  int64_t default_width;
  int64_t default_classes;
  Shape default_image;
};

const std::vector<ZooEntry>& zoo();

// The entry `arch` belongs to; kUsage with the nearest name for an unknown one.
const ZooEntry& find_architecture(std::string_view arch);

// kUsage for impossible values (width 0, kernel 4, ...).
Graph build_network(const NetSpec& spec);

}  // namespace onetap
