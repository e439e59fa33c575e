// The int8 part of a .tap file: one tensor per kind of number, with the layers' parts one after the other in the order
// of the nodes. docs/file-format.md has every byte.
#pragma once

#include "onetap/base/safetensors.h"
#include "onetap/tap/tap_net.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// Of an int8 network that check_tap_net() took; data that had to be made live in `held`.
std::vector<TensorView> int8_views(const TapNet& net, std::deque<std::string>& held);

// Bytes that a node has of these tensors.
uint64_t int8_bytes(const TapNet& net, const Node& node);

// Whether the file is of an int8 network.
bool has_int8_part(const SafetensorsFile& file);

// Fills value_scales, and tensors and scale of every layer that has no tensor NAME.weight of its own. kData naming
// `label` where tensors are missing, or are not as long as the graph says. Returns the number of tensors it used.
size_t read_int8_part(const SafetensorsFile& file, std::string_view label, TapNet& net);

// kData unless a layer's bytes and scale are what an int8 layer has, or what one that is kept in floats has, and the
// scales of values are finite numbers above 0 of values that the graph has.
void check_int8_layer(const TapNet& net, const Node& node);
void check_value_scales(const TapNet& net);

}  // namespace onetap
