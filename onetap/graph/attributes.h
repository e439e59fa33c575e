// Attributes of a node by name: what the text form and the JSON form of a network have in common.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetap {

using AttributeTexts = std::vector<std::pair<std::string, std::string>>;

// Those that differ from the op's defaults (and `out`, always), in the order in which they are written; a pair of
// rows and columns reads "3x5", or "3" where both are equal.
AttributeTexts attribute_texts(const Node& node);

// Sets a node's attributes from their spellings, in any order. kUsage with a message that begins with what is wrong:
// the caller knows the place.
void set_attributes(Node& node, const AttributeTexts& texts);

// A whole number of at least 0 that no real network exceeds.
int64_t attribute_number(std::string_view key, std::string_view text);

// "bias=0 or bias=1".
std::string spelled_choices(std::string_view key, const std::vector<std::string>& words);

// "3" or "3x5".
Extent2 attribute_extent(std::string_view key, std::string_view text);

}  // namespace onetap
