// What every fuzzer shares: an Error is a right answer, anything else that is thrown is a finding.
#pragma once

#include "onetap/base/error.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace onetap::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs `reader`; returns false if it refused the input with a proper message.
template <typename Reader>
bool accepts(const Reader& reader) {
  try {
    reader();
    return true;
  } catch (const Error& error) {
    if (error.what()[0] != '[') std::abort();  // every message carries its module
    for (const char* c = error.what(); *c != '\0'; ++c) {
      if (static_cast<unsigned char>(*c) < 0x20) std::abort();  // and is one line that a terminal can show
    }
    return false;
  }
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace onetap::fuzz
