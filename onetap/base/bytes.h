// Numbers as files hold them.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

namespace onetap {

// The bytes of an unsigned number, lowest first.
template <typename T>
std::string little_endian(T value) {
  static_assert(std::is_unsigned_v<T>, "expected an unsigned number");
  std::string bytes(sizeof(T), '\0');
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace onetap
