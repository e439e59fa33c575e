#include "onetap/tap/tap_file.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/half.h"
#include "onetap/base/json.h"
#include "onetap/base/safetensors.h"
#include "onetap/base/text.h"
#include "onetap/graph/json.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <deque>
#include <optional>

namespace onetap {
namespace {

constexpr const char* kFormat = "onetap-tap";
constexpr int64_t kVersion = 1;
constexpr const char* kFactPrefix = "about.";  // metadata keys that are facts

uint64_t packed_bytes(const Graph& graph, const Node& node) {
  const auto count = static_cast<uint64_t>(element_count(layer_shapes(graph, node).positions));
  return (count * static_cast<uint64_t>(position_bits(node.kernel.area())) + 7) / 8;
}

// What the file holds of a node, in order, without data.
std::vector<TensorView> layer_views(const Graph& graph, const Node& node, WeightType type) {
  const LayerShapes shapes = layer_shapes(graph, node);
  std::vector<TensorView> views;
  if (!shapes.weight.empty()) {
    views.push_back(
        {node.name + ".weight", type == WeightType::kF16 ? DType::kF16 : DType::kF32, shapes.weight, nullptr});
  }
  if (!shapes.bias.empty()) views.push_back({node.name + ".bias", DType::kF32, shapes.bias, nullptr});
  if (!shapes.positions.empty()) {
    const auto bytes = static_cast<int64_t>(packed_bytes(graph, node));
    views.push_back({node.name + ".positions", DType::kU8, {bytes}, nullptr});
  }
  return views;
}

Metadata metadata_of(const TapNet& net) {
  Metadata metadata = tap_metadata(net);
  metadata["format"] = kFormat;
  metadata["version"] = std::to_string(kVersion);
  metadata["graph"] = graph_json(net.graph);
  return metadata;
}

std::string to_halves(const std::vector<float>& values) {
  std::string bytes(values.size() * 2, '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = half_from_float(values[i]);
    std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

std::vector<float> to_floats(const TensorView& view) {
  std::vector<float> values(view.bytes() / dtype_bytes(view.dtype));
  const auto* bytes = static_cast<const char*>(view.data);
  if (view.dtype == DType::kF32) {
    if (!values.empty()) std::memcpy(values.data(), bytes, view.bytes());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, 2);
    values[i] = float_from_half(half);
  }
  return values;
}

// Reads a file that is known to be safetensors into a TapNet.
class Reader {
 public:
  Reader(const SafetensorsFile& file, std::string_view label) : file_(file), label_(label) {}

  TapNet read() {
    check_format();
    TapNet net;
    net.graph = parse_graph_json(text("graph"), label_);
    net.pixels.mean = scale("mean");
    net.pixels.sd = scale("sd");
    read_classes(net);
    for (const auto& [key, value] : file_.metadata()) {
      if (key.rfind(kFactPrefix, 0) == 0) net.facts[key.substr(std::strlen(kFactPrefix))] = value;
    }
    size_t used = 0;
    for (const Node& node : net.graph.nodes()) used += read_layer(net, node);
    if (used != file_.tensors().size()) {
      fail_data("[tap] expected {} tensors, got {} ({})", used, file_.tensors().size(), label_);
    }
    net.weight_type = weight_type_.value_or(WeightType::kF32);
    return net;
  }

 private:
  const std::string& text(const char* key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) fail_data("[tap] expected '{}' in the metadata, got none ({})", key, label_);
    return found->second;
  }

  void check_format() const {
    const auto found = file_.metadata().find("format");
    if (found == file_.metadata().end() || found->second != kFormat) {
      fail_data("[tap] expected a frozen network (format {}), got another kind of safetensors file ({})", kFormat,
                label_);
    }
    if (parse_int(text("version")) != kVersion) {
      fail_data("[tap] expected version {}, got '{}': written by another onetap ({})", kVersion, text("version"),
                label_);
    }
  }

  std::array<float, 3> scale(const char* key) const {
    const auto list = parse_json(text(key));
    if (!list.is_array() || list.size() != 3 || !list[0].is_number() || !list[1].is_number() || !list[2].is_number()) {
      fail_data("[tap] expected three numbers in '{}', got '{}' ({})", key, text(key), label_);
    }
    return {list[0].get<float>(), list[1].get<float>(), list[2].get<float>()};
  }

  void read_classes(TapNet& net) const {
    if (file_.metadata().count("classes") == 0) return;
    const auto list = parse_json(text("classes"));
    if (!list.is_array()) fail_data("[tap] expected a list of class names ({})", label_);
    for (const auto& name : list) {
      if (!name.is_string()) fail_data("[tap] expected class names that are strings ({})", label_);
      net.classes.push_back(name.get<std::string>());
    }
  }

  // The file's tensor that `view` describes. Sizes agree with the file before anything is allocated.
  const TensorView& find(const TensorView& view) const {
    const TensorView* found = file_.find(view.name);
    if (found == nullptr) fail_data("[tap] expected a tensor '{}', got none ({})", view.name, label_);
    if (found->shape != view.shape || found->dtype != view.dtype) {
      fail_data("[tap] expected {} [{}] for '{}', got {} [{}] ({})", dtype_name(view.dtype),
                fmt::join(view.shape, ", "), view.name, dtype_name(found->dtype), fmt::join(found->shape, ", "),
                label_);
    }
    return *found;
  }

  // All weights of a file have one type; the first decides.
  WeightType weight_type(const Node& node) {
    if (!weight_type_) {
      const TensorView* first = file_.find(node.name + ".weight");
      weight_type_ = first != nullptr && first->dtype == DType::kF16 ? WeightType::kF16 : WeightType::kF32;
    }
    return *weight_type_;
  }

  // Returns the number of tensors it used.
  size_t read_layer(TapNet& net, const Node& node) {
    if (layer_shapes(net.graph, node).weight.empty()) return 0;
    const std::vector<TensorView> views = layer_views(net.graph, node, weight_type(node));
    LayerTensors tensors;
    for (const TensorView& view : views) {
      const TensorView& found = find(view);
      if (view.dtype == DType::kU8) {
        const auto count = static_cast<size_t>(element_count(layer_shapes(net.graph, node).positions));
        tensors.positions = unpack_positions({static_cast<const char*>(found.data), found.bytes()}, count,
                                             position_bits(node.kernel.area()), view.name);
      } else {
        (view.name == node.name + ".weight" ? tensors.weight : tensors.bias) = to_floats(found);
      }
    }
    net.layers[node.name] = std::move(tensors);
    return views.size();
  }

  const SafetensorsFile& file_;
  const std::string_view label_;
  std::optional<WeightType> weight_type_;
};

}  // namespace

std::string pack_positions(const std::vector<uint16_t>& positions, int bits) {
  const auto width = static_cast<size_t>(bits);
  std::string packed((positions.size() * width + 7) / 8, '\0');
  for (size_t i = 0; i < positions.size(); ++i) {
    for (size_t b = 0; b < width; ++b) {
      if (((positions[i] >> b) & 1u) == 0) continue;
      const size_t at = i * width + b;
      packed[at / 8] = static_cast<char>(static_cast<uint8_t>(packed[at / 8]) | (1u << (at % 8)));
    }
  }
  return packed;
}

std::vector<uint16_t> unpack_positions(std::string_view packed, size_t count, int bits, std::string_view label) {
  const auto width = static_cast<size_t>(bits);
  const auto bit = [&](size_t at) { return (static_cast<uint8_t>(packed[at / 8]) >> (at % 8)) & 1u; };
  std::vector<uint16_t> positions(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < width; ++b) {
      positions[i] = static_cast<uint16_t>(positions[i] | (bit(i * width + b) << b));
    }
  }
  for (size_t at = count * width; at < packed.size() * 8; ++at) {
    if (bit(at) != 0) fail_data("[tap] expected zero bits after the last position ({})", label);
  }
  return positions;
}

Metadata tap_metadata(const TapNet& net) {
  Metadata metadata = {{"mean", fmt::format("[{}]", fmt::join(net.pixels.mean, ","))},
                       {"sd", fmt::format("[{}]", fmt::join(net.pixels.sd, ","))}};
  if (!net.classes.empty()) metadata["classes"] = json_text(nlohmann::json(net.classes));
  for (const auto& [key, value] : net.facts) metadata[kFactPrefix + key] = value;
  return metadata;
}

std::string tap_bytes(const TapNet& net) {
  check_tap_net(net);
  std::deque<std::string> held;  // converted data lives until the file is made
  std::vector<TensorView> views;
  for (const Node& node : net.graph.nodes()) {
    for (TensorView& view : layer_views(net.graph, node, net.weight_type)) {
      const LayerTensors& tensors = net.tensors(node);
      if (view.dtype == DType::kU8) {
        view.data = held.emplace_back(pack_positions(tensors.positions, position_bits(node.kernel.area()))).data();
      } else if (view.dtype == DType::kF16) {
        view.data = held.emplace_back(to_halves(tensors.weight)).data();
      } else {
        view.data = view.name == node.name + ".weight" ? tensors.weight.data() : tensors.bias.data();
      }
      views.push_back(std::move(view));
    }
  }
  return safetensors_bytes(std::move(views), metadata_of(net));
}

uint64_t tap_length(const Graph& frozen, WeightType type) {
  std::vector<TensorView> views;
  for (const Node& node : frozen.nodes()) {
    for (TensorView& view : layer_views(frozen, node, type)) views.push_back(std::move(view));
  }
  TapNet shell;
  shell.graph = frozen;
  return safetensors_length(std::move(views), metadata_of(shell));
}

void write_tap(const std::filesystem::path& path, const TapNet& net) {
  write_file_atomic(path, tap_bytes(net));
}

TapNet parse_tap(std::string bytes, std::string_view label) {
  const SafetensorsFile file = SafetensorsFile::parse(std::move(bytes), label);
  TapNet net = Reader(file, label).read();
  try {
    check_tap_net(net);
  } catch (const Error& problem) {
    fail_data("{} ({})", problem.what(), label);
  }
  return net;
}

bool looks_like_tap(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string front = read_start(path, 9);
  return front.size() == 9 && front[8] == '{';
}

TapNet read_tap(const std::filesystem::path& path) {
  return parse_tap(read_file(path), path.string());
}

}  // namespace onetap
