// What a .tap file says and operators of ONNX have no place for, as one entry of a model's metadata: taps and blocks of
// tap convolutions, the tables of shifts, and of int8 networks the scale that a layer's grid begins with and the shift
// of its bias. A model without it is read too, to a network that computes the same (of int8 networks those without
// shifts).
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

// The entry of an int8 network, and of one of floats.
constexpr const char *kInt8FactsKey = "int8", *kFloatFactsKey = "layers";

struct LayerFacts {
  std::optional<float> base;  // not of a layer that is kept in floats
  int64_t bias_shift = 0;
  int64_t taps = 0;  // of a tap convolution; 0 of others
  BlockShare share;
  std::vector<int64_t> zeros;  // zero_entries() of tap/sparse_to_taps.h
  std::optional<Node> shift;   // a shift with its kernel, dilation and counts
};

// JSON, layers by their names.
std::string layer_facts_text(const TapNet& net);
// kData naming the entry and `label` for another text.
std::map<std::string, LayerFacts> parse_layer_facts(const std::string& text, const char* key, std::string_view label);

// A depthwise convolution of an image of shape `in` as the shift that moves its channels so; nothing if it does not.
std::optional<Node> as_shift(const Node& conv, Node shift, const Shape& in, const Tensor& weight);
// Makes a convolution the tap convolution that the facts say; false, and nothing changed, if its weights are no such
// one. Adds the dropped weights to `dropped`, which must not exceed what a file may have.
bool as_taps(const LayerFacts& facts, Node& node, LayerTensors& tensors, int64_t& dropped);

}  // namespace onetap
