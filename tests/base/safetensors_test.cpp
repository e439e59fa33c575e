#include "onetap/base/safetensors.h"

#include "tests/support/support.h"

#include <algorithm>
#include <cstring>
#include <ctime>

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

std::string entry_text(const std::string& name) {
  return "\"" + name + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
}

// Names of a deep network's tensors; all of them empty.
std::string many_entries(size_t count) {
  std::string header = "{";
  for (size_t i = 0; i < count; ++i) header += (i > 0 ? "," : "") + entry_text("layer" + std::to_string(i) + ".weight");
  return header + "}";
}

// Seconds of this process's CPU to write, read and look up so many tensors: other processes do not count.
double cpu_seconds(size_t count) {
  const float value = 1;
  std::vector<TensorView> tensors;
  for (size_t i = 0; i < count; ++i) tensors.push_back({"t" + std::to_string(i), DType::kF32, {1}, &value});
  const std::clock_t start = std::clock();
  const auto file = SafetensorsFile::parse(safetensors_bytes(tensors), "many");
  EXPECT_EQ(file.tensors().size(), count);
  for (const TensorView& tensor : tensors) EXPECT_NE(file.find(tensor.name), nullptr) << tensor.name;
  EXPECT_EQ(file.find("t" + std::to_string(count)), nullptr);
  EXPECT_EQ(SafetensorsFile::parse(file_of(many_entries(count), ""), "empty").tensors().size(), count);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// A checkpoint of a network of a thousand layers: each tensor took longer than the one before. Eight times as many take
// eight times as long; when the work was quadratic, sixty-four times.
TEST(Safetensors, WorkIsLinearInTheNumberOfTensors) {
  const double few = std::max({cpu_seconds(5'000), cpu_seconds(5'000), 1e-3});
  EXPECT_LT(cpu_seconds(40'000), 30 * few);
}

TEST(Safetensors, HeadersBeyondTheLimitsAreRefused) {
  expect_rejected(std::string(10'000'000, '['), "", "not a JSON object");
  expect_rejected("{\"a\":" + std::string(10'000'000, '['), "", "no valid description");
  expect_rejected(R"({"a":{"extra":)" + std::string(10'000'000, '['), "", "at most 64 levels");
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  expect_rejected(R"({"w":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})", "x", "no valid shape");
  std::string metadata;
  for (int i = 0; i < 65'537; ++i) metadata += (i > 0 ? "," : "") + ("\"" + std::to_string(i) + "\":\"\"");
  expect_rejected(R"({"__metadata__":{)" + metadata + "}}", "", "at most 65536 entries of metadata");
  expect_rejected(many_entries((size_t{1} << 20) + 1), "", "at most 1048576 tensors");
}

TEST(Safetensors, ValuesWhereTheyDoNotBelong) {
  expect_rejected(R"({"w":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "1234", "no valid shape");
  expect_rejected(R"({"w":{"dtype":"F32","shape":{"a":1},"data_offsets":[0,4]}})", "1234", "no valid shape");
  expect_rejected(R"({"w":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", "1234", "no valid dtype");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", "1234", "no valid data_offsets");
  expect_rejected(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":["0",4]}})", "1234", "no valid data_offsets");
  expect_rejected(R"({"w":[{"dtype":"F32"}]})", "", "no valid description");
  expect_rejected(R"({"__metadata__":["a"]})", "", "__metadata__ is not an object");
  expect_rejected(R"({"__metadata__":{"a":["b"]}})", "", "not a string");
  expect_rejected(R"({"__metadata__":{},"__metadata__":{}})", "", "appears twice");
  expect_rejected(R"("text")", "", "not a JSON object");
  expect_rejected(R"({} {})", "", "not a JSON object");
}

TEST(Safetensors, KeysOfOthersArePassedOver) {
  const auto file = SafetensorsFile::parse(
      file_of(R"({"w":{"note":{"shape":[9],"data_offsets":[1,[2,{"a":3}]]},"shape":[1],"list":[7,8],"dtype":"U8",)"
              R"("data_offsets":[0,1],"n":null}})",
              "x"),
      "others");
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{1}));
}

// As an object of nlohmann's prints it.
TEST(Safetensors, HeaderIsWrittenAsBefore) {
  const uint8_t byte = 0;
  const std::string bytes =
      safetensors_bytes({{"b\"\xff", DType::kU8, {1, 1}, &byte}, {"a", DType::kF32, {0}, nullptr}}, {{"k", "v\n"}});
  const std::string header = R"({"__metadata__":{"k":"v\n"},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                             "\"b\\\"\xef\xbf\xbd\":"
                             R"({"dtype":"U8","shape":[1,1],"data_offsets":[0,1]}})";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.size() % 8, 1u);
}

}  // namespace
}  // namespace onetap
