#include "onetap/base/crc32c.h"

#include <array>

namespace onetap {
namespace {

// Row k: what a byte does to the state when k more bytes follow it. Eight rows take eight bytes a turn, about five
// times as fast as one by one.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t row = 1; row < tables.size(); ++row) {
      const uint32_t before = tables[row - 1][i];
      tables[row][i] = (before >> 8) ^ tables[0][before & 0xFFu];
    }
  }
  return tables;
}

}  // namespace

void Crc32c::update(const void* bytes, size_t count) {
  static const Tables tables = make_tables();
  const auto* at = static_cast<const uint8_t*>(bytes);
  uint32_t crc = state_;
  for (; count >= 8; count -= 8, at += 8) {
    crc = tables[7][(crc ^ at[0]) & 0xFFu] ^ tables[6][((crc >> 8) ^ at[1]) & 0xFFu] ^
          tables[5][((crc >> 16) ^ at[2]) & 0xFFu] ^ tables[4][((crc >> 24) ^ at[3]) & 0xFFu] ^ tables[3][at[4]] ^
          tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
  }
  for (; count > 0; --count, ++at) crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xFFu];
  state_ = crc;
}

uint32_t crc32c(std::string_view bytes) {
  Crc32c crc;
  crc.update(bytes.data(), bytes.size());
  return crc.value();
}

}  // namespace onetap
