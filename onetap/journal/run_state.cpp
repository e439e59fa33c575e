#include "onetap/journal/run_state.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

namespace onetap {
namespace {

constexpr int kFormat = 1;

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
  return json_text(object, 2) + '\n';
}

RunState RunState::parse(const std::string& text, const std::string& label) {
  const nlohmann::json object = parse_json(text);
  try {
    const int format = object.at("format").get<int>();
    if (format != kFormat) {
      fail_data("[checkpoint] expected format {}, got {}: written by another version of onetap ({})", kFormat, format,
                label);
    }
    RunState state;
    object.at("step").get_to(state.step);
    object.at("epoch_logged").get_to(state.epoch_logged);
    object.at("loss_sum").get_to(state.loss_sum);
    object.at("right").get_to(state.right);
    object.at("seen").get_to(state.seen);
    object.at("temperature").get_to(state.temperature);
    object.at("wall_s").get_to(state.wall_s);
    object.at("metrics_bytes").get_to(state.metrics_bytes);
    object.at("attention_bytes").get_to(state.attention_bytes);
    object.at("best_accuracy").get_to(state.best_accuracy);
    object.at("best_step").get_to(state.best_step);
    if (state.step < 0) fail_data("[checkpoint] expected a step of at least 0, got {} ({})", state.step, label);
    return state;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[checkpoint] not a state file: {} ({})", problem.what(), label);
  }
}

}  // namespace onetap
