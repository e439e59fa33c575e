#include "onetap/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace onetap {
namespace {

// RFC 3720, B.4, and the usual check value.
TEST(Crc32c, FollowsTheStandardsVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, PiecesOfAnyLengthGiveTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Crc32c crc;
    crc.update(text.data(), cut);
    crc.update(text.data() + cut, text.size() - cut);
    EXPECT_EQ(crc.value(), crc32c(text)) << cut;
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  std::string text(257, 'x');
  const uint32_t whole = crc32c(text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32c(text), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace onetap
