#include "onetap/journal/event_file.h"

#include "onetap/base/bytes.h"
#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/protobuf.h"

#include <chrono>
#include <unistd.h>

namespace onetap {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The front of every event; what happened comes behind.
ProtobufMessage event(int64_t step) {
  ProtobufMessage message;
  message.add_double(1, now()).add_int(2, step);
  return message;
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
  writer_->write(tfrecord(event(0).add_bytes(3, "brain.Event:2").bytes()));
  // TensorBoard drops everything at or after the step of a session start; what was logged at `step` itself stays.
  constexpr int64_t kSessionStart = 1;
  ProtobufMessage session;
  session.add_int(1, kSessionStart);
  if (step > 0) writer_->write(tfrecord(event(step + 1).add_message(7, session).bytes()));
}

void EventFile::write_scalars(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  ProtobufMessage summary;
  for (const auto& [name, value] : scalars) {
    ProtobufMessage scalar;
    scalar.add_bytes(1, name).add_float(2, static_cast<float>(value));
    summary.add_message(1, scalar);
  }
  writer_->write(tfrecord(event(step).add_message(5, summary).bytes()));
}

}  // namespace onetap
