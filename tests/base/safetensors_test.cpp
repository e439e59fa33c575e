#include "onetap/base/safetensors.h"

#include "tests/support/support.h"

#include <cstring>

namespace onetap {
namespace {

using testing::expect_error;
using testing::TempDir;

// A file from a header text and a buffer, with an honest header length.
std::string file_of(const std::string& header, const std::string& buffer) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + buffer;
}

void expect_rejected(const std::string& header, const std::string& buffer, const std::string& why) {
  expect_error(ErrorKind::kData, why, [&] { SafetensorsFile::parse(file_of(header, buffer), "test"); });
}

TEST(Safetensors, RoundTrip) {
  const TempDir dir;
  const std::vector<float> a = {1.5f, -2, 3e-30f, 4, 5, 6};
  const std::vector<int64_t> b = {1, -1};
  const std::vector<uint8_t> c = {1, 2, 3};
  write_safetensors(dir / "x.safetensors",
                    {{"layer.a", DType::kF32, {2, 3}, a.data()},
                     {"c", DType::kU8, {3}, c.data()},
                     {"b", DType::kI64, {2}, b.data()},
                     {"empty", DType::kF32, {0, 4}, nullptr},
                     {"scalar", DType::kF32, {}, a.data()}},
                    {{"key", "value \"quoted\""}});
  const auto file = SafetensorsFile::read(dir / "x.safetensors");
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.metadata().at("key"), "value \"quoted\"");
  const TensorView* view = file.find("layer.a");
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(view->data, a.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.find("b")->data, b.data(), 16), 0);
  EXPECT_EQ(std::memcmp(file.find("c")->data, c.data(), 3), 0);
  EXPECT_EQ(file.find("empty")->bytes(), 0u);
  EXPECT_EQ(file.find("scalar")->bytes(), 4u);
  EXPECT_EQ(file.find("missing"), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 4, 0u);
}

TEST(Safetensors, ReadsAFileWrittenByHand) {
  const auto file = SafetensorsFile::parse(
      file_of(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )",
              std::string("\0\0\x80?", 4)),
      "hand");
  ASSERT_EQ(file.tensors().size(), 1u);
  float value = 0;
  std::memcpy(&value, file.find("w")->data, 4);
  EXPECT_EQ(value, 1.0f);
}

TEST(Safetensors, TrustsNothing) {
  const std::string four(4, 'x'), eight(8, 'x');
  expect_error(ErrorKind::kData, "at least 8 bytes", [] { SafetensorsFile::parse("abc", "test"); });
  expect_error(ErrorKind::kData, "header length", [] { SafetensorsFile::parse(std::string(8, '\xff'), "test"); });
  expect_rejected("not json", "", "not a JSON object");
  expect_rejected("[1]", "", "not a JSON object");
  expect_rejected(R"({"w":5})", "", "no valid description");
  expect_rejected(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", four, "no valid dtype");
  expect_rejected(R"({"w":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}})", four, "no valid dtype");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four, "no valid shape");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", four, "no valid shape");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", four,
                  "impossible shape");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", four, "no valid data_offsets");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four, "needs 4 bytes");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four, "needs 8 bytes");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", four, "expected at offset");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight, "expected at offset 0");
  expect_rejected(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      four, "expected at offset 4");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight, "4 bytes after the last tensor");
  expect_rejected(
      R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
      "", "appears twice");
  expect_rejected(R"({"__metadata__":{"a":1}})", "", "not a string");
}

TEST(Safetensors, EveryTruncationIsRejected) {
  const TempDir dir;
  const std::vector<float> a = {1, 2, 3};
  write_safetensors(dir / "x", {{"a", DType::kF32, {3}, a.data()}});
  const std::string whole = testing::read_text(dir / "x");
  for (size_t length = 0; length < whole.size(); ++length) {
    expect_error(ErrorKind::kData, "[safetensors]", [&] { SafetensorsFile::parse(whole.substr(0, length), "test"); });
  }
}

}  // namespace
}  // namespace onetap
