// CRC-32C (Castagnoli, RFC 3720): tells a flipped bit in a checkpoint, and frames TensorBoard's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onetap {

// Of bytes that come piece by piece.
class Crc32c {
 public:
  void update(const void* bytes, size_t count);
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xFFFFFFFFu;
};

uint32_t crc32c(std::string_view bytes);

}  // namespace onetap
