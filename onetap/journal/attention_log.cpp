#include "onetap/journal/attention_log.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/journal/line_file.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace onetap {
namespace {

constexpr int64_t kMaxKernel = 64;

// Five digits are more than a chart shows, and keep a line of a hundred layers short.
nlohmann::ordered_json rounded(const std::vector<double>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const double value : values) list.push_back(std::round(value * 1e5) / 1e5);
  return list;
}

LayerAttention parse_layer(const nlohmann::json& object, std::string_view label) {
  LayerAttention layer;
  layer.name = json_string(object, "name");
  const std::vector<int64_t> kernel = whole_numbers(object, "kernel");
  if (kernel.size() != 2) fail_data("[attention] expected two sides of a kernel, got {} ({})", kernel.size(), label);
  layer.kernel_h = kernel[0];
  layer.kernel_w = kernel[1];
  layer.mean_p = json_numbers(object, "mean_p");
  layer.kept = whole_numbers(object, "kept");
  layer.max_p = json_numbers(object, "max_p");
  layer.agreement = json_number_or_null(object, "agreement");
  const auto is_extent = [](int64_t side) { return side >= 1 && side <= kMaxKernel; };
  const bool kernel_ok = is_extent(layer.kernel_h) && is_extent(layer.kernel_w);
  const size_t positions = kernel_ok ? static_cast<size_t>(layer.positions()) : 0;
  if (!kernel_ok || layer.mean_p.size() != positions || layer.kept.size() != positions ||
      layer.max_p.size() != LayerAttention::kBins) {
    fail_data("[attention] the lists of layer '{}' do not fit its kernel ({})", layer.name, label);
  }
  const auto check_share = [&](double share) {
    if (!(share >= 0 && share <= 1)) fail_data("[attention] expected fractions of 0 to 1, got {} ({})", share, label);
  };
  for (const double share : layer.mean_p) check_share(share);
  for (const double share : layer.max_p) check_share(share);
  check_share(layer.agreement.value_or(0));
  if (object.contains("none")) layer.none = json_number(object, "none");
  check_share(layer.none);
  return layer;
}

}  // namespace

std::string AttentionLine::json() const {
  nlohmann::ordered_json object;
  object["step"] = step;
  object["epoch"] = epoch;
  object["temperature"] = temperature;
  auto list = nlohmann::ordered_json::array();
  for (const LayerAttention& layer : layers) {
    nlohmann::ordered_json item;
    item["name"] = layer.name;
    item["kernel"] = {layer.kernel_h, layer.kernel_w};
    item["mean_p"] = rounded(layer.mean_p);
    item["kept"] = layer.kept;
    item["max_p"] = rounded(layer.max_p);
    item["agreement"] = layer.agreement ? nlohmann::ordered_json(std::round(*layer.agreement * 1e5) / 1e5)
                                        : nlohmann::ordered_json(nullptr);
    if (layer.none > 0) item["none"] = std::round(layer.none * 1e5) / 1e5;
    list.push_back(std::move(item));
  }
  object["layers"] = std::move(list);
  return json_text(object);
}

AttentionLine AttentionLine::parse(std::string_view text, std::string_view label) {
  const nlohmann::json object = parse_json(text);
  try {
    AttentionLine line;
    line.step = whole_number(object, "step");
    line.epoch = whole_number(object, "epoch");
    line.temperature = json_number(object, "temperature");
    for (const nlohmann::json& item : json_list(object, "layers")) line.layers.push_back(parse_layer(item, label));
    return line;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[attention] not a line of attention: {} ({})", problem.what(), label);
  }
}

std::vector<AttentionLine> parse_attention(std::string_view text, std::string_view label) {
  return parse_lines<AttentionLine>(text, label);
}

std::vector<AttentionLine> read_attention(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  return parse_attention(read_file(path, uint64_t{1} << 30), path.string());
}

}  // namespace onetap
