#include "onetap/journal/metrics.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/journal/line_file.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace onetap {

std::string MetricLine::json() const {
  nlohmann::ordered_json line;
  line["step"] = step;
  line["epoch"] = epoch;
  line["split"] = split;
  line["loss"] = loss;
  line["acc_soft"] = acc_soft;
  line["acc_hard"] = acc_hard ? nlohmann::ordered_json(*acc_hard) : nlohmann::ordered_json(nullptr);
  line["lr"] = lr;
  line["temperature"] = temperature;
  line["img_per_s"] = img_per_s;
  line["wall_s"] = wall_s;
  if (data_wait) line["data_wait"] = *data_wait;
  return json_text(line);
}

MetricLine MetricLine::parse(std::string_view text, std::string_view label) {
  const nlohmann::json object = parse_json(text);
  try {
    MetricLine line;
    line.step = whole_number(object, "step");
    line.epoch = whole_number(object, "epoch");
    line.split = json_string(object, "split");
    line.loss = json_number_or_null(object, "loss").value_or(std::numeric_limits<double>::quiet_NaN());
    line.acc_soft = json_number(object, "acc_soft");
    line.acc_hard = json_number_or_null(object, "acc_hard");
    line.lr = json_number(object, "lr");
    line.temperature = json_number(object, "temperature");
    line.img_per_s = json_number(object, "img_per_s");
    line.wall_s = json_number(object, "wall_s");
    if (object.contains("data_wait")) line.data_wait = json_number(object, "data_wait");
    return line;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[metrics] not a line of metrics: {} ({})", problem.what(), label);
  }
}

std::vector<MetricLine> parse_metrics(std::string_view text, std::string_view label) {
  return parse_lines<MetricLine>(text, label);
}

std::vector<MetricLine> read_metrics(const std::filesystem::path& path) {
  return parse_metrics(read_file(path, uint64_t{1} << 30), path.string());
}

const MetricLine* last_test(const std::vector<MetricLine>& lines) {
  const auto last =
      std::find_if(lines.rbegin(), lines.rend(), [](const MetricLine& line) { return line.split == "test"; });
  return last == lines.rend() ? nullptr : &*last;
}

}  // namespace onetap
