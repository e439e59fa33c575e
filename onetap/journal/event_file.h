// TensorBoard event files, written without protobuf.
//
// TFRecord framing: u64 length, u32 masked CRC-32C of it, payload, u32 masked CRC-32C of the payload. A payload is
// an Event message: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5,
// session_log = 7.
#pragma once

#include "onetap/base/file.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onetap {

// CRC-32C (Castagnoli) as TFRecord stores it: rotated right by 15 and offset.
uint32_t masked_crc32c(std::string_view bytes);

// One framed record.
std::string tfrecord(std::string_view payload);

// Counts of values between `limits`: counts[i] of them above limits[i] and up to limits[i + 1].
struct EventHistogram {
  std::vector<double> limits;
  std::vector<double> counts;
};

// A setting as TensorBoard's table of hyper-parameters shows it: a number, a switch or a word.
using EventSetting = std::variant<double, bool, std::string>;

class EventFile {
 public:
  // A new file in `directory`, named events.out.tfevents.<time>.<host>.<process>. `step` says where the run
  // (re)starts, so that TensorBoard drops what a killed sitting had written beyond it.
  EventFile(const std::filesystem::path& directory, int64_t step);

  void write_scalars(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  void write_histograms(int64_t step, const std::vector<std::pair<std::string, EventHistogram>>& histograms);
  // For the plugin "hparams": what the run was started with.
  void write_settings(const std::vector<std::pair<std::string, EventSetting>>& settings);

 private:
  std::unique_ptr<FileWriter> writer_;
};

}  // namespace onetap
