// What a TOML text must keep before it is given to the parser, which would otherwise end the process.
#pragma once

#include <string_view>

namespace onetap {

// kUsage if a key has more parts than any recipe needs. Each part is a table within a table, and the parser takes such
// tables apart by recursion: a long key overflows the stack.
void check_key_depth(std::string_view text, std::string_view label);

}  // namespace onetap
