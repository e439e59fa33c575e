// Protobuf's wire format, written without protobuf: what TensorBoard event files and ONNX models are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace onetap {

// A message under construction: fields in the order they are added, repeated ones as often as they are.
class ProtobufMessage {
 public:
  ProtobufMessage& add_int(uint32_t field, int64_t value);  // int32, int64, bool and enums alike
  ProtobufMessage& add_float(uint32_t field, float value);
  ProtobufMessage& add_double(uint32_t field, double value);
  ProtobufMessage& add_bytes(uint32_t field, std::string_view bytes);  // and strings
  ProtobufMessage& add_message(uint32_t field, const ProtobufMessage& message);

  const std::string& bytes() const& { return bytes_; }
  std::string bytes() && { return std::move(bytes_); }

 private:
  void add_varint(uint64_t value);
  void add_key(uint32_t field, uint32_t wire_type);

  std::string bytes_;
};

}  // namespace onetap
