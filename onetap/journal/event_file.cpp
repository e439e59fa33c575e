#include "onetap/journal/event_file.h"

#include "onetap/base/fail.h"

#include <array>
#include <chrono>
#include <cstring>
#include <unistd.h>

namespace onetap {
namespace {

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xFFu];
  return crc ^ 0xFFFFFFFFu;
}

template <typename T>
std::string little_endian(T value) {
  std::string text(sizeof(T), '\0');
  for (size_t i = 0; i < sizeof(T); ++i) text[i] = static_cast<char>(value >> (8 * i));
  return text;
}

// Protobuf wire format: just the parts an Event needs.
std::string varint(uint64_t value) {
  std::string text;
  while (value >= 0x80) {
    text += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  return text + static_cast<char>(value);
}

std::string tag(uint32_t field, uint32_t wire_type) {
  return varint(field << 3 | wire_type);
}

std::string bytes_field(uint32_t field, std::string_view bytes) {
  return tag(field, 2) + varint(bytes.size()) + std::string(bytes);
}

std::string varint_field(uint32_t field, uint64_t value) {
  return tag(field, 0) + varint(value);
}

std::string double_field(uint32_t field, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return tag(field, 1) + little_endian(bits);
}

std::string float_field(uint32_t field, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return tag(field, 5) + little_endian(bits);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event(int64_t step, const std::string& content) {
  return double_field(1, now()) + varint_field(2, static_cast<uint64_t>(step)) + content;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string tfrecord(std::string_view payload) {
  const std::string length = little_endian(static_cast<uint64_t>(payload.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(payload) + little_endian(masked_crc32c(payload));
}

EventFile::EventFile(const std::filesystem::path& directory, int64_t step) {
  // Zero-padded time first: TensorBoard reads the files of a run in the order of their names.
  std::filesystem::path path;
  for (int serial = 0;; ++serial) {
    path = directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now()), host_name(),
                                   ::getpid(), serial);
    if (!std::filesystem::exists(path)) break;
  }
  writer_ = std::make_unique<FileWriter>(path);
  constexpr uint64_t kSessionStart = 1;
  writer_->write(tfrecord(event(0, bytes_field(3, "brain.Event:2"))));
  // TensorBoard drops everything at or after the step of a session start; what was logged at `step` itself stays.
  if (step > 0) writer_->write(tfrecord(event(step + 1, bytes_field(7, varint_field(1, kSessionStart)))));
}

void EventFile::write_scalars(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    summary += bytes_field(1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
  }
  writer_->write(tfrecord(event(step, bytes_field(5, summary))));
}

}  // namespace onetap
