#include "onetap/onnx/wire_check.h"

#include "onetap/base/fail.h"

#include <cstdint>

namespace onetap {
namespace {

constexpr int64_t kMaxParts = 8'000'000;

// Protobuf's wire format: a key (number of the field, kind of value), then the value.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // The next field; false at the end, or where the bytes make no sense. Groups (3 and 4) make none: no model has them,
  // and protobuf would read on behind them.
  bool next() {
    uint64_t key = 0, value = 0;
    if (at_ >= bytes_.size() || !varint(key) || key >> 32 != 0) return false;
    field = key >> 3;
    content = {};
    switch (key & 7) {
      case 0:
        return varint(value);
      case 1:
        return skip(8);
      case 2:
        if (!varint(value) || value > bytes_.size() - at_) return false;
        content = bytes_.substr(at_, value);
        return skip(value);
      case 5:
        return skip(4);
      default:
        return false;
    }
  }

  bool at_end() const { return at_ == bytes_.size(); }

  uint64_t field = 0;
  std::string_view content;  // of a message or a string

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool skip(uint64_t count) {
    if (count > bytes_.size() - at_) return false;
    at_ += count;
    return true;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

// Which field of a message is a message, and which holds whole numbers that take more in memory than in a file.
enum class Kind {
  kLeaf,
  kNumbers,
  kModel,
  kGraph,
  kFunction,
  kNode,
  kAttribute,
  kTensor,
  kValue,
  kType,
  kTensorType,
  kShape
};

struct FieldRow {
  Kind message;
  uint64_t field;
  Kind content;
};
constexpr FieldRow kFields[] = {
    {Kind::kModel, 7, Kind::kGraph},      {Kind::kModel, 25, Kind::kFunction},     {Kind::kGraph, 1, Kind::kNode},
    {Kind::kGraph, 5, Kind::kTensor},     {Kind::kGraph, 11, Kind::kValue},        {Kind::kGraph, 12, Kind::kValue},
    {Kind::kFunction, 7, Kind::kNode},    {Kind::kFunction, 11, Kind::kAttribute}, {Kind::kNode, 5, Kind::kAttribute},
    {Kind::kAttribute, 5, Kind::kTensor}, {Kind::kAttribute, 8, Kind::kNumbers},   {Kind::kTensor, 1, Kind::kNumbers},
    {Kind::kTensor, 5, Kind::kNumbers},   {Kind::kTensor, 7, Kind::kNumbers},      {Kind::kValue, 2, Kind::kType},
    {Kind::kType, 1, Kind::kTensorType},  {Kind::kTensorType, 2, Kind::kShape},
};

Kind content_of(Kind message, uint64_t field) {
  for (const FieldRow& row : kFields) {
    if (row.message == message && row.field == field) return row.content;
  }
  return Kind::kLeaf;
}

// Messages, strings and blocks of numbers in these bytes, at most `most`, or one more. kData if the bytes are no
// message.
int64_t count_parts(Kind message, std::string_view bytes, int64_t most, std::string_view label) {
  constexpr int64_t kNumbersOfPart = 16;
  int64_t parts = 0;
  Reader reader(bytes);
  while (parts <= most && reader.next()) {
    ++parts;
    const Kind content = content_of(message, reader.field);
    if (content == Kind::kNumbers) {
      parts += static_cast<int64_t>(reader.content.size()) / kNumbersOfPart;
    } else if (content != Kind::kLeaf) {
      parts += count_parts(content, reader.content, most - parts, label);
    }
  }
  if (parts <= most && !reader.at_end())
    fail_data("[onnx] expected a model in protobuf's format, got other bytes ({})", label);
  return parts;
}

}  // namespace

void check_wire(const std::string& bytes, std::string_view label) {
  if (count_parts(Kind::kModel, bytes, kMaxParts, label) <= kMaxParts) return;
  fail_data("[onnx] expected at most {} parts of a model, got more ({})", kMaxParts, label);
}

}  // namespace onetap
