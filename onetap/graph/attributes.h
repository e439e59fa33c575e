// Attributes of a node by name: what the text form and the JSON form of a network have in common.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetap {

// Those that differ from the op's defaults (and `out`, always), in the order in which they are written; a pair of
// rows and columns reads "3x5", or "3" where both are equal.
std::vector<std::pair<std::string, std::string>> attribute_texts(const Node& node);

// Sets one from its spelling. kUsage with a message that begins with what is wrong: the caller knows the place.
void set_attribute(Node& node, std::string_view key, std::string_view value);

// kUsage if attributes that need each other are not all there; call it when all are set.
void check_attributes(const Node& node);

// A whole number of at least 0 that no real network exceeds.
int64_t attribute_number(std::string_view key, std::string_view text);

// "3" or "3x5".
Extent2 attribute_extent(std::string_view key, std::string_view text);

}  // namespace onetap
