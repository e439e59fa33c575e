// What the file of an int8 network says and operators of ONNX have no place for, as one entry of a model's metadata:
// the scale that a layer's grid begins with, the shift of its bias, taps and blocks of tap convolutions, the tables of
// shifts. A model without it is read too, to a network that computes the same, unless it has shifts.
#pragma once

#include "onetap/graph/share.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

constexpr const char* kInt8FactsKey = "int8";

struct Int8LayerFacts {
  std::optional<float> base;  // not of a layer that is kept in floats
  int64_t bias_shift = 0;
  int64_t taps = 0;  // of a tap convolution; 0 of others
  BlockShare share;
  std::vector<int64_t> zeros;  // zero_entries() of tap/sparse_to_taps.h
  std::optional<Node> shift;   // a shift with its kernel, dilation and counts
};

// JSON, layers by their names.
std::string int8_facts_text(const TapNet& net);
// kData naming `label` for another text.
std::map<std::string, Int8LayerFacts> parse_int8_facts(const std::string& text, std::string_view label);

}  // namespace onetap
