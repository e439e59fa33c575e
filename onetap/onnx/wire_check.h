// How much memory a serialized model would take, from its bytes alone: an empty message has two bytes in a file and a
// hundred and more in memory.
#pragma once

#include <string>
#include <string_view>

namespace onetap {

// kData, naming `label`, if the model has more messages and strings than a network can have. What is damaged passes:
// the parser will say so.
void check_wire(const std::string& bytes, std::string_view label);

}  // namespace onetap
