#include "onetap/base/protobuf.h"

#include "onetap/base/bytes.h"

#include <cstring>

namespace onetap {
namespace {

constexpr uint32_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

}  // namespace

ProtobufMessage& ProtobufMessage::add_int(uint32_t field, int64_t value) {
  add_key(field, kVarint);
  add_varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::add_float(uint32_t field, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  add_key(field, kFixed32);
  bytes_ += little_endian(bits);
  return *this;
}

ProtobufMessage& ProtobufMessage::add_double(uint32_t field, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  add_key(field, kFixed64);
  bytes_ += little_endian(bits);
  return *this;
}

ProtobufMessage& ProtobufMessage::add_bytes(uint32_t field, std::string_view bytes) {
  add_key(field, kLengthDelimited);
  add_varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

ProtobufMessage& ProtobufMessage::add_message(uint32_t field, const ProtobufMessage& message) {
  return add_bytes(field, message.bytes_);
}

void ProtobufMessage::add_varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void ProtobufMessage::add_key(uint32_t field, uint32_t wire_type) {
  add_varint(field << 3 | wire_type);
}

}  // namespace onetap
