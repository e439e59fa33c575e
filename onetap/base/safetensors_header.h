// The header of a safetensors file, read in one pass without a tree of its JSON: time and memory are linear in its
// length.
#pragma once

#include "onetap/base/safetensors.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace onetap {

constexpr const char* kMetadataKey = "__metadata__";

struct SafetensorsHeader {
  struct Entry {
    TensorView tensor;  // without its data
    uint64_t begin = 0, end = 0;
  };

  std::vector<Entry> entries;  // in the order of their names
  Metadata metadata;
};

// Bytes of a tensor; kData, naming `label`, when the product leaves 63 bits.
uint64_t checked_bytes(const TensorView& tensor, std::string_view label);

// kData, naming `label`, for what is no such header or is beyond the limits of docs/file-format.md.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::string_view label);

}  // namespace onetap
