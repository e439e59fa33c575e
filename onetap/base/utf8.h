// Text by the character, for whoever measures or draws it.
#pragma once

#include <string>
#include <string_view>

namespace onetap {

// Code points; every byte that is not part of well-formed UTF-8 becomes U+FFFD.
std::u32string decode_utf8(std::string_view bytes);
// What is no code point (a surrogate, beyond U+10FFFF) becomes U+FFFD.
std::string encode_utf8(std::u32string_view characters);

// The text as one line that a terminal can show: what it would obey rather than show is spelled out. Line ends and tabs
// become \n, \r and \t, other control characters and bytes that are no UTF-8 \x1b, marks that turn the direction of
// writing, split lines or cannot be seen \u202e. Everything else stays, backslashes too: twice is the same as once.
std::string printable(std::string_view text);

// At most `limit` characters (1 or more): where some must go, those in the middle do, and an ellipsis stands for them.
std::string shorten_middle(std::string_view utf8, size_t limit);

}  // namespace onetap
