#include "onetap/base/text.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("-7"), -7);
  for (const char* bad : {"", "4x", " 4", "4 ", "1.5", "0x10", "99999999999999999999"}) {
    EXPECT_FALSE(parse_int(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  EXPECT_FALSE(parse_double("1.0f").has_value());
}

TEST(Text, AMessageWithinAnotherHasNoRoom) {
  EXPECT_EQ(without_module("[graph] a: expected b"), "a: expected b");
  for (const char* other : {"", "expected [x] y", "[1, 2] is no pair", "[open", "[]"})
    EXPECT_EQ(without_module(other), other);
}

TEST(Text, QuotesCellsOfCsvFilesWhereNeeded) {
  EXPECT_EQ(csv_field("layer1.0"), "layer1.0");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("=cmd|calc.tap"), "'=cmd|calc.tap");
  EXPECT_EQ(csv_field("=a,b"), "\"'=a,b\"");
  EXPECT_EQ(csv_field("-x"), "'-x");
  EXPECT_EQ(csv_field("-0.5"), "-0.5");
  EXPECT_EQ(csv_field(std::string(1, '\0')), std::string(1, '\0'));
}

TEST(Text, Globs) {
  EXPECT_TRUE(glob_match("layer1.*", "layer1.0.conv1"));
  EXPECT_TRUE(glob_match("*.conv?", "layer1.0.conv2"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a*b*c", "aXbXbXc"));
  EXPECT_FALSE(glob_match("layer1.*", "layer10.0"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("a*b", "acbd"));
  EXPECT_TRUE(glob_match("*a*a*a*a*b", std::string(2000, 'a') + "b"));  // no exponential search
}

TEST(Text, SuggestsTypingErrorsOnly) {
  const std::vector<std::string> keys = {"width", "epochs", "weight_decay"};
  EXPECT_EQ(nearest("widht", keys), "width");
  EXPECT_EQ(nearest("weight-decay", keys), "weight_decay");
  EXPECT_FALSE(nearest("colour", keys).has_value());
  EXPECT_EQ(did_you_mean("epoch", keys), ", did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean("qqqqqq", keys), "");
}

TEST(Text, Thousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(129276152), "129,276,152");
  EXPECT_EQ(with_thousands(981609.5), "981,609.5");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
}

TEST(Text, SplitsAndTrims) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(words("  a\tb  c\r").size(), 3u);
  EXPECT_EQ(trim(" \t x y \r\n"), "x y");
  EXPECT_EQ(trim("   "), "");
}

}  // namespace
}  // namespace onetap
