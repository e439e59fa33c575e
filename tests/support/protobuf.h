// A reader of protobuf messages, from the description of the wire format: what the tests hold our writer against.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace onetap::testing {

inline uint64_t take_varint(const std::string& text, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(text.at(at++));
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

// By field number, repeated ones in their order: numbers as decimals, all else as the bytes that are there.
inline std::multimap<uint64_t, std::string> fields(const std::string& message) {
  std::multimap<uint64_t, std::string> found;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = take_varint(message, at);
    if (key % 8 == 0) {
      found.emplace(key / 8, std::to_string(take_varint(message, at)));
      continue;
    }
    const size_t length = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : take_varint(message, at);
    found.emplace(key / 8, message.substr(at, length));
    at += length;
  }
  return found;
}

}  // namespace onetap::testing
