#include "onetap/base/utf8.h"

#include "onetap/base/error.h"

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

TEST(Printable, PlainTextStays) {
  for (const char* text :
       {"", "runs/first", u8"Zürich €5 𝄞 日本", "C:\\new\\x1b", u8"emoji \U0001F469\u200D\U0001F52C"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatATerminalObeysIsSpelledOut) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable(u8"\u009b31m"), "\\u009b31m");  // the 8-bit form of ESC [
  EXPECT_EQ(printable(u8"photo\u202egpj.exe"), "photo\\u202egpj.exe");
  EXPECT_EQ(printable(u8"\u2066\u2069\u200f\u061c\u2028\u2029\ufeff"),
            "\\u2066\\u2069\\u200f\\u061c\\u2028\\u2029\\ufeff");
  EXPECT_EQ(printable(u8"\U000E0041"), "\\ue0041");
}

TEST(Printable, BytesThatAreNoTextAreSpelledOut) {
  EXPECT_EQ(printable("a\xFFz"), "a\\xffz");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");
}

TEST(Printable, TwiceIsOnce) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(printable(printable(all)), printable(all));
  for (const char c : printable(all)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
}

TEST(Error, EndlessNamesAreCut) {
  const Error error(ErrorKind::kData, "[tap] got '" + std::string(10'000'000, 'x') + "' (a.tap)");
  const std::string text = error.what();
  EXPECT_LT(text.size(), 5000u);
  EXPECT_EQ(text.substr(0, 12), "[tap] got 'x");
  EXPECT_EQ(text.substr(text.size() - 9), "' (a.tap)");
}

TEST(Error, MessagesAreOneLine) {
  const Error error(ErrorKind::kData, "[tap] got 'a\nonetap: \x1b[31mall is lost\x1b[0m'");
  EXPECT_STREQ(error.what(), "[tap] got 'a\\nonetap: \\x1b[31mall is lost\\x1b[0m'");
}

}  // namespace
}  // namespace onetap
