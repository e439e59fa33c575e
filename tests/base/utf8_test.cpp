#include "onetap/base/utf8.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(Utf8, EveryLengthComesBack) {
  // One character of each length, and the ends of each range.
  const std::string text = u8"a\u007f\u0080é\u07ff\u0800€\uffff\U00010000𝄞\U0010ffff";
  const std::u32string characters = U"a\u007f\u0080é\u07ff\u0800€\uffff\U00010000𝄞\U0010ffff";
  EXPECT_EQ(decode_utf8(text), characters);
  EXPECT_EQ(encode_utf8(characters), text);
}

TEST(Utf8, WhatIsNoneBecomesTheReplacement) {
  EXPECT_EQ(decode_utf8("a\xFFz"), U"a\uFFFDz");
  EXPECT_EQ(decode_utf8("\xC0\xAF"), U"\uFFFD\uFFFD");            // '/' written too long
  EXPECT_EQ(decode_utf8("\xED\xA0\x80"), U"\uFFFD\uFFFD\uFFFD");  // half of a surrogate pair
  EXPECT_EQ(decode_utf8("\xE2\x82"), U"\uFFFD\uFFFD");            // cut short
  EXPECT_EQ(decode_utf8("\xF4\x90\x80\x80").size(), 4u);          // beyond the last code point
  const std::u32string beyond = {static_cast<char32_t>(0xD800), static_cast<char32_t>(0x110000)};
  EXPECT_EQ(encode_utf8(beyond), u8"\uFFFD\uFFFD");
}

TEST(Utf8, ShortensInTheMiddleByTheCharacter) {
  EXPECT_EQ(shorten_middle("layer1.0.conv1", 14), "layer1.0.conv1");
  EXPECT_EQ(shorten_middle("encoder.layer1.0.conv1", 11), u8"encod…conv1");
  EXPECT_EQ(shorten_middle("abcdef", 4), u8"ab…f");
  EXPECT_EQ(shorten_middle(u8"ääääää", 4), u8"ää…ä");
  EXPECT_EQ(shorten_middle("abc", 1), u8"…");
  EXPECT_EQ(shorten_middle("", 1), "");
}

}  // namespace
}  // namespace onetap
