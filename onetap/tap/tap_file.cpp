#include "onetap/tap/tap_file.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/half.h"
#include "onetap/base/json.h"
#include "onetap/base/safetensors.h"
#include "onetap/base/text.h"
#include "onetap/graph/json.h"
#include "onetap/graph/op.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "onetap/tap/binary.h"
#include "onetap/tap/codes.h"
#include "onetap/tap/file_limits.h"
#include "onetap/tap/int8_file.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

namespace onetap {
namespace {

constexpr const char* kFormat = "onetap-tap";
constexpr int64_t kVersion = 4;  // the newest; files say the oldest that has all of theirs
constexpr int64_t kInt8Version = 4;
constexpr const char* kFactPrefix = "about.";  // metadata keys that are facts

// Types that the tensors of a node have in the file.
struct LayerTypes {
  DType weight = DType::kF32;
  DType bias = DType::kF32;
};

DType stored_type(WeightType type) {
  return type == WeightType::kF16 ? DType::kF16 : DType::kF32;
}

DType stored_type(const Node& node, WeightType type) {
  return follows_weight_type(node) ? stored_type(type) : DType::kF32;
}

// Tensors lie in the file as in memory, but for binary weights and the weights of a network of 16-bit floats.
LayerTypes stored_types(const TapNet& net, const Node& node, const LayerTensors& tensors) {
  const DType weight = tensors.weight.dtype();
  return {weight == DType::kF32 ? stored_type(node, net.weight_type) : weight, tensors.bias.dtype()};
}

// Weights of a tap convolution that the file leaves out.
int64_t dropped_of(const Graph& graph, const Node& node) {
  return node.op == Op::kTapConv ? tap_layout(graph, node).dropped : 0;
}

// The oldest version of the format that a network can be written in, and what of it is as new as that.
struct NeededVersion {
  int64_t version = 1;
  std::string reason = {};

  void raise(int64_t to, const Node& node, std::string_view what) {
    if (to > version) *this = {to, fmt::format("{} ('{}')", what, node.name)};
  }
};

// Version 2 added shifts, binary weights and tap convolutions of one position, version 3 sets that inputs share and
// weights that are left out, version 4 int8, the functions beside ReLU, products and pads.
NeededVersion version_of(const Graph& graph) {
  NeededVersion needed;
  for (const Node& node : graph.nodes()) {
    const bool is_new_function = is_activation(node.op) && node.op != Op::kRelu;
    const char* op = op_info(node.op).name;
    if (node.op == Op::kShift || node.op == Op::kActiveShift) needed.raise(2, node, op);
    if (is_binary(node)) needed.raise(2, node, "binary weights");
    if (node.op == Op::kMul || node.op == Op::kPad || is_new_function) needed.raise(4, node, op);
    if (node.op != Op::kTapConv) continue;
    if (node.kernel.area() == 1) needed.raise(2, node, "a tapconv of one position");
    const TapLayout layout = tap_layout(graph, node);
    if (layout.share_inputs > 1) needed.raise(3, node, "inputs that share positions");
    if (layout.dropped > 0) needed.raise(3, node, "dropped weights");
  }
  return needed;
}

int64_t version_of(const TapNet& net) {
  return net.is_int8() ? kInt8Version : version_of(net.graph).version;
}

enum class Part { kWeight, kSigns, kScale, kBias, kPositions };

// One tensor of a node as the file holds it, without data.
struct Stored {
  Part part;
  TensorView view;
};

std::vector<Stored> stored_tensors(const Graph& graph, const Node& node, const LayerTypes& types) {
  const LayerShapes shapes = layer_shapes(graph, node);
  std::vector<Stored> list;
  if (is_binary(node)) {
    const auto bytes = static_cast<int64_t>(packed_bytes(static_cast<uint64_t>(element_count(shapes.weight)), 1));
    list.push_back({Part::kSigns, {node.name + ".signs", DType::kU8, {bytes}, nullptr}});
    list.push_back({Part::kScale, {node.name + ".scale", types.weight, {node.out}, nullptr}});
  } else if (const int64_t dropped = dropped_of(graph, node); dropped > 0) {
    const int64_t kept = element_count(shapes.weight) - dropped;
    list.push_back({Part::kWeight, {node.name + ".weight", types.weight, {kept}, nullptr}});
  } else if (!shapes.weight.empty()) {
    list.push_back({Part::kWeight, {node.name + ".weight", types.weight, shapes.weight, nullptr}});
  }
  if (!shapes.bias.empty()) list.push_back({Part::kBias, {node.name + ".bias", types.bias, shapes.bias, nullptr}});
  if (!shapes.positions.empty()) {
    const auto count = static_cast<uint64_t>(element_count(shapes.positions));
    const auto bytes = static_cast<int64_t>(packed_bytes(count, tap_layout(graph, node).bits()));
    list.push_back({Part::kPositions, {node.name + ".positions", DType::kU8, {bytes}, nullptr}});
  }
  return list;
}

Metadata metadata_of(const TapNet& net) {
  Metadata metadata = tap_metadata(net);
  metadata["format"] = kFormat;
  metadata["version"] = std::to_string(version_of(net));
  // An int8 file is so small that JSON would be a noticeable part of it.
  if (net.is_int8()) {
    metadata["network"] = network_text(net.graph);
  } else {
    metadata["graph"] = graph_json(net.graph);
  }
  if (!net.value_ranges.empty()) metadata["ranges"] = json_text(nlohmann::json(net.value_ranges));
  return metadata;
}

std::string to_halves(const Tensor& tensor) {
  const auto* values = tensor.data<float>();
  std::string bytes(tensor.count() * 2, '\0');
  for (size_t i = 0; i < tensor.count(); ++i) {
    const uint16_t half = half_from_float(values[i]);
    std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

std::string to_bytes(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

Tensor to_tensor(const TensorView& view) {
  const auto* bytes = static_cast<const char*>(view.data);
  if (view.dtype != DType::kF16) {
    Tensor tensor(view.dtype, view.shape);
    if (tensor.bytes() > 0) std::memcpy(tensor.raw(), bytes, tensor.bytes());
    return tensor;
  }
  Tensor tensor(DType::kF32, view.shape);
  auto* values = tensor.data<float>();
  for (size_t i = 0; i < tensor.count(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, 2);
    values[i] = float_from_half(half);
  }
  return tensor;
}

const std::string& metadata_text(const Metadata& metadata, const char* key, std::string_view label) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail_data("[tap] expected '{}' in the metadata, got none ({})", key, label);
  return found->second;
}

std::array<float, 3> pixel_numbers(const Metadata& metadata, const char* key, std::string_view label) {
  constexpr size_t kLongest = 256;
  const std::string& text = metadata_text(metadata, key, label);
  if (text.size() > kLongest) {
    fail_data("[tap] expected three numbers in '{}', got {} characters ({})", key, text.size(), label);
  }
  const auto list = parse_json(text);
  if (!list.is_array() || list.size() != 3 || !list[0].is_number() || !list[1].is_number() || !list[2].is_number()) {
    fail_data("[tap] expected three numbers in '{}', got '{}' ({})", key, text, label);
  }
  return {list[0].get<float>(), list[1].get<float>(), list[2].get<float>()};
}

std::vector<std::string> class_names(const Metadata& metadata, std::string_view label) {
  if (metadata.count("classes") == 0) return {};
  const auto list = parse_json(metadata.at("classes"));
  if (!list.is_array()) fail_data("[tap] expected a list of class names ({})", label);
  std::vector<std::string> names;
  for (const auto& name : list) {
    if (!name.is_string()) fail_data("[tap] expected class names that are strings ({})", label);
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Reads a file that is known to be safetensors into a TapNet.
class Reader {
 public:
  Reader(const SafetensorsFile& file, std::string_view label) : file_(file), label_(label) {}

  TapNet read() {
    check_format();
    TapNet net;
    const bool is_int8 = has_int8_part(file_);
    check_form(is_int8);
    net.graph = is_int8 ? read_network_text() : parse_graph_json(text("graph"), label_);
    check_version_of(net.graph);
    read_tap_metadata(file_.metadata(), label_, net);
    read_ranges(net);
    size_t used = is_int8 ? read_int8_part(file_, label_, net) : 0;
    for (const Node& node : net.graph.nodes()) {
      if (net.layers.count(node.name) == 0) used += read_layer(net, node);
    }
    if (used != file_.tensors().size()) {
      fail_data("[tap] expected {} tensors, got {} ({})", used, file_.tensors().size(), label_);
    }
    net.weight_type = weight_type_.value_or(WeightType::kF32);
    return net;
  }

 private:
  const std::string& text(const char* key) const { return metadata_text(file_.metadata(), key, label_); }

  void check_format() const {
    const auto found = file_.metadata().find("format");
    if (found == file_.metadata().end() || found->second != kFormat) {
      fail_data("[tap] expected a frozen network (format {}), got another kind of safetensors file ({})", kFormat,
                label_);
    }
    const auto version = parse_int(text("version"));
    if (!version || *version < 1 || *version > kVersion) {
      fail_data("[tap] expected version 1 to {}, got '{}': written by another onetap ({})", kVersion, text("version"),
                label_);
    }
  }

  // A reader of the version that the file names would take it for one that it knows.
  void check_version_of(const Graph& graph) const {
    const NeededVersion needed = version_of(graph);
    if (parse_int(text("version")).value_or(0) < needed.version) {
      fail_data("[tap] expected version {} of a file with {}, got '{}' ({})", needed.version, needed.reason,
                text("version"), label_);
    }
  }

  // An int8 network is text, one of floats JSON: a file with both would hold two networks.
  void check_form(bool is_int8) const {
    const bool has_graph = file_.metadata().count("graph") > 0, has_network = file_.metadata().count("network") > 0;
    if (has_graph && has_network) {
      fail_data("[tap] expected 'graph' or 'network' in the metadata, got both ({})", label_);
    }
    if (has_network && !is_int8) fail_data("[tap] expected a tensor 'int8/value', got none ({})", label_);
  }

  Graph read_network_text() const {
    if (parse_int(text("version")).value_or(0) < kInt8Version) {
      fail_data("[tap] expected version {} of a file with int8 tensors, got '{}' ({})", kInt8Version, text("version"),
                label_);
    }
    const std::string& network = text("network");
    try {
      return parse_network(network);
    } catch (const Error& problem) {
      fail_data("{} ({})", problem.what(), label_);
    }
  }

  void read_ranges(TapNet& net) const {
    if (file_.metadata().count("ranges") == 0) return;
    const auto object = parse_json(text("ranges"));
    if (!object.is_object()) fail_data("[tap] expected ranges by name ({})", label_);
    for (const auto& [name, range] : object.items()) {
      if (!range.is_number()) fail_data("[tap] expected ranges that are numbers ({})", label_);
      net.value_ranges[name] = range.get<float>();
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

  DType type_of(const std::string& name) const {
    const TensorView* found = file_.find(name);
    return found == nullptr ? DType::kF32 : found->dtype;
  }

  // What to expect of a node's tensors: what is there, but all float weights of a file have one type, which the first
  // decides, and no bias is of 16 bits. Scales are floats, and the places of an active shift are F32.
  LayerTypes types_of(const Node& node) {
    LayerTypes types{type_of(node.name + (is_binary(node) ? ".scale" : ".weight")), type_of(node.name + ".bias")};
    if (!follows_weight_type(node)) {
      types.weight = DType::kF32;
    } else if (types.weight == DType::kF32 || types.weight == DType::kF16 || is_binary(node)) {
      if (!weight_type_) weight_type_ = types.weight == DType::kF16 ? WeightType::kF16 : WeightType::kF32;
      types.weight = stored_type(*weight_type_);
    }
    if (types.bias == DType::kF16) types.bias = DType::kF32;
    return types;
  }

  // A bit of the file becomes four bytes, a position "none" those of a whole block: limits before they are taken.
  void count_bits(int64_t weights, const std::string& layer) {
    bit_weights_ += weights;
    if (bit_weights_ <= kMaxBitWeights) return;
    fail_data("[tap] expected at most {} weights of one bit in a file, got {} ({}, {})", kMaxBitWeights, bit_weights_,
              layer, label_);
  }
  void count_dropped(int64_t weights, const std::string& layer) {
    dropped_weights_ += weights;
    if (dropped_weights_ <= kMaxDroppedWeights) return;
    fail_data("[tap] expected at most {} dropped weights in a file, got {} ({}, {})", kMaxDroppedWeights,
              dropped_weights_, layer, label_);
  }

  // What is not in the file is 0 in memory. Codes first: they say where.
  void refill(const TapLayout& layout, const std::string& layer, LayerTensors& tensors) {
    count_dropped(layout.dropped, layer);
    check_codes(layout, tensors.positions, layer);
    if (const int64_t dropped = dropped_weights(layout, tensors.positions); dropped != layout.dropped) {
      fail_data("[tap] expected {} weights without a position, got {} ({}, {})", layout.dropped, dropped, layer,
                label_);
    }
    tensors.weight = refill_weights(layout, tensors.positions, tensors.weight);
  }

  // Returns the number of tensors it used.
  size_t read_layer(TapNet& net, const Node& node) {
    if (layer_shapes(net.graph, node).weight.empty()) return 0;
    const std::vector<Stored> list = stored_tensors(net.graph, node, types_of(node));
    LayerTensors tensors;
    std::string_view signs;
    for (const auto& [part, view] : list) {
      const TensorView& found = find(view);
      switch (part) {
        case Part::kWeight:
          tensors.weight = to_tensor(found);
          break;
        case Part::kSigns:
          signs = {static_cast<const char*>(found.data), found.bytes()};
          break;
        case Part::kScale:
          count_bits(element_count(layer_shapes(net.graph, node).weight), node.name);
          tensors.weight = unpack_binary(signs, to_tensor(found), layer_shapes(net.graph, node).weight,
                                         fmt::format("{}, {}", node.name, label_));
          break;
        case Part::kBias:
          tensors.bias = to_tensor(found);
          break;
        case Part::kPositions: {
          const TapLayout layout = tap_layout(net.graph, node);
          tensors.positions =
              unpack_codes({static_cast<const char*>(found.data), found.bytes()}, static_cast<size_t>(layout.codes()),
                           layout.bits(), fmt::format("{}, {}", view.name, label_));
          break;
        }
      }
    }
    if (dropped_of(net.graph, node) > 0) refill(tap_layout(net.graph, node), node.name, tensors);
    net.layers[node.name] = std::move(tensors);
    return list.size();
  }

  const SafetensorsFile& file_;
  const std::string_view label_;
  int64_t bit_weights_ = 0, dropped_weights_ = 0;
  std::optional<WeightType> weight_type_;
};

}  // namespace

Metadata pixel_metadata(const PixelScale& pixels) {
  return {{"mean", fmt::format("[{}]", fmt::join(pixels.mean, ","))},
          {"sd", fmt::format("[{}]", fmt::join(pixels.sd, ","))}};
}

std::optional<PixelScale> find_pixels(const Metadata& metadata, std::string_view label) {
  if (metadata.count("mean") == 0 && metadata.count("sd") == 0) return std::nullopt;
  const PixelScale pixels = {pixel_numbers(metadata, "mean", label), pixel_numbers(metadata, "sd", label)};
  try {
    check_pixels(pixels);
  } catch (const Error& problem) {
    fail_data("{} ({})", problem.what(), label);
  }
  return pixels;
}

Metadata tap_metadata(const TapNet& net) {
  Metadata metadata = pixel_metadata(net.pixels);
  if (!net.classes.empty()) metadata["classes"] = json_text(nlohmann::json(net.classes));
  for (const auto& [key, value] : net.facts) metadata[kFactPrefix + key] = value;
  return metadata;
}

std::string tap_bytes(const TapNet& net) {
  check_tap_net(net);
  std::deque<std::string> held;  // converted data lives until the file is made
  const auto data_of = [&](const Node& node, const LayerTensors& tensors, const Stored& stored) -> const void* {
    switch (stored.part) {
      case Part::kSigns:
        return held.emplace_back(pack_binary(tensors.weight).signs).data();
      case Part::kScale: {
        const Tensor scales = Tensor::of<float>(pack_binary(tensors.weight).scales, stored.view.shape);
        return held.emplace_back(stored.view.dtype == DType::kF16 ? to_halves(scales) : to_bytes(scales)).data();
      }
      case Part::kWeight: {
        const bool is_whole = dropped_of(net.graph, node) == 0;
        if (is_whole && stored.view.dtype == tensors.weight.dtype()) return tensors.weight.raw();
        const Tensor weight =
            is_whole ? tensors.weight : kept_weights(tap_layout(net.graph, node), tensors.positions, tensors.weight);
        return held.emplace_back(stored.view.dtype == weight.dtype() ? to_bytes(weight) : to_halves(weight)).data();
      }
      case Part::kBias:
        return tensors.bias.raw();
      case Part::kPositions:
        return held.emplace_back(pack_codes(tensors.positions, tap_layout(net.graph, node).bits())).data();
    }
    return nullptr;
  };
  std::vector<TensorView> views;
  if (net.is_int8()) views = int8_views(net, held);
  for (const Node& node : net.graph.nodes()) {
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end() || (net.is_int8() && found->second.weight.dtype() == DType::kI8)) continue;
    for (Stored& stored : stored_tensors(net.graph, node, stored_types(net, node, found->second))) {
      stored.view.data = data_of(node, found->second, stored);
      views.push_back(std::move(stored.view));
    }
  }
  return safetensors_bytes(std::move(views), metadata_of(net));
}

uint64_t tap_length(const Graph& frozen, WeightType type) {
  std::vector<TensorView> views;
  for (const Node& node : frozen.nodes()) {
    for (Stored& stored : stored_tensors(frozen, node, {stored_type(node, type), DType::kF32})) {
      views.push_back(std::move(stored.view));
    }
  }
  TapNet shell;
  shell.graph = frozen;
  return safetensors_length(std::move(views), metadata_of(shell));
}

std::vector<uint64_t> stored_bytes(const TapNet& net) {
  std::vector<uint64_t> bytes;
  for (const Node& node : net.graph.nodes()) {
    bytes.push_back(net.is_int8() ? int8_bytes(net, node) : 0);
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end() || (net.is_int8() && found->second.weight.dtype() == DType::kI8)) continue;
    for (const Stored& stored : stored_tensors(net.graph, node, stored_types(net, node, found->second))) {
      bytes.back() += stored.view.bytes();
    }
  }
  return bytes;
}

void write_tap(const std::filesystem::path& path, const TapNet& net) {
  write_file_atomic(path, tap_bytes(net));
}

void read_tap_metadata(const Metadata& metadata, std::string_view label, TapNet& net) {
  net.pixels.mean = pixel_numbers(metadata, "mean", label);
  net.pixels.sd = pixel_numbers(metadata, "sd", label);
  net.classes = class_names(metadata, label);
  for (const auto& [key, value] : metadata) {
    if (key.rfind(kFactPrefix, 0) == 0) net.facts[key.substr(std::strlen(kFactPrefix))] = value;
  }
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
