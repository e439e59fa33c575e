#include "onetap/base/protobuf.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

using namespace std::string_literals;

// The examples of protobuf's page about its encoding.
TEST(Protobuf, WritesThePublishedExamples) {
  ProtobufMessage number, text, nested;
  EXPECT_EQ(number.add_int(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(text.add_bytes(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(nested.add_message(3, number).bytes(), "\x1a\x03\x08\x96\x01");
}

TEST(Protobuf, NegativeNumbersTakeTenBytes) {
  ProtobufMessage message;
  EXPECT_EQ(message.add_int(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Protobuf, RealNumbersAreLittleEndianAndKeysGrow) {
  ProtobufMessage message;
  message.add_double(1, 1.0).add_float(16, -2.0f);
  EXPECT_EQ(message.bytes(), "\x09\0\0\0\0\0\0\xf0\x3f\x85\x01\0\0\0\xc0"s);
}

}  // namespace
}  // namespace onetap
