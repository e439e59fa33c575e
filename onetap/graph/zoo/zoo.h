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

struct ArchSpec;

// An architecture: how it is spelled, what it is built from where nothing is given, and the builder.
struct ZooEntry {
  enum class Depth {
    kNone,
    kAppended,  // "resnet20": the spelling and 6n+2
    kOptional,  // 20 if the name ends without one
  };

  std::string name;  // as it is listed
  std::vector<std::string> spellings;
  Graph (*build)(const ArchSpec& spec) = nullptr;
  std::string summary;
  Depth depth = Depth::kNone;
  std::string usual_method = "conv";  // of a network that is looked at without a word about methods

  int64_t default_width = 16;
  int64_t default_classes = 10;
  Shape default_image{3, 32, 32};
  std::optional<int64_t> default_kernel;     // unset: kernels of its own, `kernel` has no place
  std::optional<int64_t> default_expansion;  // unset: it has none
  bool has_shortcut_a = false;
};

// Every architecture. To add one: its builder (architectures.h) and a row of zoo_table.cpp.
const std::vector<ZooEntry>& zoo();

// The entry `arch` belongs to; kUsage with the nearest name for an unknown one.
const ZooEntry& find_architecture(std::string_view arch);

// kUsage for impossible values (width 0, kernel 4, ...), and for settings that the architecture does not have.
Graph build_network(const NetSpec& spec);

}  // namespace onetap
