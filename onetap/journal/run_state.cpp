#include "onetap/journal/run_state.h"

#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace onetap {
namespace {

constexpr int kFormat = 1;
constexpr const char* kChecksum = "crc32c";  // of the state itself

std::string checksum_text(uint32_t checksum) {
  return fmt::format("{:08x}", checksum);
}

uint32_t parse_checksum(const std::string& text, const std::string& label) {
  uint32_t checksum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), checksum, 16);
  if (error != std::errc() || end != text.data() + text.size() || text != checksum_text(checksum)) {
    fail_data("[checkpoint] expected a checksum of 8 digits, got '{}' ({})", text, label);
  }
  return checksum;
}

// Over its members without blanks and in the order of their names, so that a reformatted state is the same state.
std::string state_checksum(nlohmann::json object) {
  object.erase(kChecksum);
  return checksum_text(crc32c(json_text(object)));
}

}  // namespace

std::string RunState::json() const {
  nlohmann::ordered_json object;
  object["format"] = kFormat;
  object["step"] = step;
  object["epoch_logged"] = epoch_logged;
  object["loss_sum"] = loss_sum;
  object["right"] = right;
  object["seen"] = seen;
  object["temperature"] = temperature;
  object["wall_s"] = wall_s;
  object["metrics_bytes"] = metrics_bytes;
  object["attention_bytes"] = attention_bytes;
  object["best_accuracy"] = best_accuracy;
  object["best_step"] = best_step;
  if (ended) object["ended"] = true;
  if (!teacher.empty()) object["teacher"] = teacher;
  if (!checksums.empty()) {
    nlohmann::ordered_json files = nlohmann::ordered_json::object();
    for (const auto& [name, checksum] : checksums) files[name] = checksum_text(checksum);
    object["files"] = files;
    object[kChecksum] = state_checksum(parse_json(json_text(object)));
  }
  return json_text(object, 2) + '\n';
}

RunState RunState::parse(const std::string& text, const std::string& label) {
  const nlohmann::json object = parse_json(text);
  try {
    const int64_t format = whole_number(object, "format");
    if (format != kFormat) {
      fail_data("[checkpoint] expected format {}, got {}: written by another version of onetap ({})", kFormat, format,
                label);
    }
    RunState state;
    state.step = whole_number(object, "step");
    state.epoch_logged = json_bool(object, "epoch_logged");
    state.loss_sum = json_number(object, "loss_sum");
    state.right = whole_number(object, "right");
    state.seen = whole_number(object, "seen");
    state.temperature = json_number(object, "temperature");
    state.wall_s = json_number(object, "wall_s");
    state.metrics_bytes = static_cast<uint64_t>(whole_number(object, "metrics_bytes"));
    state.attention_bytes = static_cast<uint64_t>(whole_number(object, "attention_bytes"));
    state.best_accuracy = json_number(object, "best_accuracy");
    state.best_step = whole_number(object, "best_step", -1);
    if (object.contains("ended")) state.ended = json_bool(object, "ended");
    if (object.contains("teacher")) state.teacher = json_string(object, "teacher");
    if (!object.contains("files") && !object.contains(kChecksum)) return state;  // of a version without checksums
    const nlohmann::json& files = json_object(object, "files");
    for (const auto& item : files.items()) {
      state.checksums[item.key()] = parse_checksum(json_string(files, item.key().c_str()), label);
    }
    if (const std::string written = json_string(object, kChecksum); written != state_checksum(object)) {
      fail_data("[checkpoint] expected the state with checksum {}, got {} ({})", written, state_checksum(object),
                label);
    }
    return state;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[checkpoint] not a state file: {} ({})", problem.what(), label);
  }
}

}  // namespace onetap
