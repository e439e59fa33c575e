#include "onetap/journal/event_file.h"

#include "onetap/base/bytes.h"
#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/protobuf.h"

#include <chrono>
#include <cstring>
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

// A field of packed doubles, as a repeated one is stored.
std::string packed(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes += little_endian(bits);
  }
  return bytes;
}

// HistogramProto: min, max, num, sum, sum_squares, upper ends of the buckets, their counts. Values of a bucket count as
// its middle.
ProtobufMessage histogram_message(const EventHistogram& histogram) {
  double number = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double middle = (histogram.limits[i] + histogram.limits[i + 1]) / 2;
    number += histogram.counts[i];
    sum += histogram.counts[i] * middle;
    squares += histogram.counts[i] * middle * middle;
  }
  ProtobufMessage message;
  message.add_double(1, histogram.limits.front()).add_double(2, histogram.limits.back());
  message.add_double(3, number).add_double(4, sum).add_double(5, squares);
  message.add_bytes(6, packed({histogram.limits.begin() + 1, histogram.limits.end()}));
  message.add_bytes(7, packed(histogram.counts));
  return message;
}

// google.protobuf.Value.
ProtobufMessage setting_message(const EventSetting& setting) {
  ProtobufMessage message;
  if (const auto* number = std::get_if<double>(&setting)) message.add_double(2, *number);
  if (const auto* word = std::get_if<std::string>(&setting)) message.add_bytes(3, *word);
  if (const auto* toggle = std::get_if<bool>(&setting)) message.add_int(4, *toggle ? 1 : 0);
  return message;
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

void EventFile::write_histograms(int64_t step, const std::vector<std::pair<std::string, EventHistogram>>& histograms) {
  ProtobufMessage summary;
  for (const auto& [name, histogram] : histograms) {
    ProtobufMessage value;
    value.add_bytes(1, name).add_message(5, histogram_message(histogram));
    summary.add_message(1, value);
  }
  writer_->write(tfrecord(event(step).add_message(5, summary).bytes()));
}

void EventFile::write_settings(const std::vector<std::pair<std::string, EventSetting>>& settings) {
  ProtobufMessage start;  // SessionStartInfo
  for (const auto& [name, setting] : settings) {
    ProtobufMessage entry;
    entry.add_bytes(1, name).add_message(2, setting_message(setting));
    start.add_message(1, entry);
  }
  start.add_double(5, now());
  ProtobufMessage content, plugin, metadata, value, summary;  // HParamsPluginData in SummaryMetadata.PluginData
  content.add_message(3, start);
  plugin.add_bytes(1, "hparams").add_bytes(2, content.bytes());
  metadata.add_message(1, plugin);
  value.add_bytes(1, "_hparams_/session_start_info").add_message(9, metadata);
  summary.add_message(1, value);
  writer_->write(tfrecord(event(0).add_message(5, summary).bytes()));
}

}  // namespace onetap
