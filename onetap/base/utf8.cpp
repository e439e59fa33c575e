#include "onetap/base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace onetap {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kEllipsis = 0x2026;

bool is_code_point(char32_t c) {
  return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

// Bytes of the sequence at the start of `bytes`, its code point in `character`; 0 if it is none.
size_t read_sequence(std::string_view bytes, char32_t& character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    character = first;
    return 1;
  }
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return 0;
  character = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3Fu);
  }
  // The same character could be written longer than needed; such forms are errors.
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return character >= kSmallest[length] && is_code_point(character) ? length : 0;
}

// False for what a terminal obeys or hides: control characters, line and paragraph separators, marks of direction,
// invisible tags.
bool is_shown(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kHidden[] = {{0, 0x1F},        {0x7F, 0x9F},      {0x061C, 0x061C}, {0x200B, 0x200B},
                               {0x200E, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
                               {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
  for (const Range& range : kHidden) {
    if (c >= range.first && c <= range.last) return false;
  }
  return true;
}

const char* short_name(char32_t c) {
  return c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : nullptr;
}

}  // namespace

std::u32string decode_utf8(std::string_view bytes) {
  std::u32string characters;
  while (!bytes.empty()) {
    char32_t character = 0;
    const size_t length = read_sequence(bytes, character);
    characters += length > 0 ? character : kReplacement;
    bytes.remove_prefix(length > 0 ? length : 1);
  }
  return characters;
}

std::string encode_utf8(std::u32string_view characters) {
  std::string bytes;
  for (char32_t c : characters) {
    if (!is_code_point(c)) c = kReplacement;
    const auto add = [&](char32_t bits) { bytes += static_cast<char>(static_cast<uint8_t>(bits)); };
    if (c < 0x80) {
      add(c);
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    add((0xFF00u >> (more + 1) & 0xFFu) | c >> 6 * more);
    for (int i = more - 1; i >= 0; --i) add(0x80 | (c >> 6 * i & 0x3F));
  }
  return bytes;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    char32_t character = 0;
    const size_t length = read_sequence(text, character);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (is_shown(character)) {
      shown += text.substr(0, length);
    } else if (const char* name = short_name(character); name != nullptr) {
      shown += name;
    } else {
      shown += character < 0x80 ? fmt::format("\\x{:02x}", static_cast<uint32_t>(character))
                                : fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return shown;
}

std::string shorten_middle(std::string_view utf8, size_t limit) {
  const std::u32string characters = decode_utf8(utf8);
  if (characters.size() <= limit) return std::string(utf8);
  if (limit == 0) return "";
  const size_t head = limit / 2, tail = limit - 1 - head;
  return encode_utf8(characters.substr(0, head) + kEllipsis + characters.substr(characters.size() - tail));
}

}  // namespace onetap
