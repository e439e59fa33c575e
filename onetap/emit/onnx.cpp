#include "onetap/emit/onnx.h"

#include "onetap/base/fail.h"
#include "onetap/base/protobuf.h"
#include "onetap/base/utf8.h"
#include "onetap/base/version.h"
#include "onetap/tap/moves.h"
#include "onetap/tap/tap_file.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

namespace onetap {
namespace {

constexpr int64_t kIrVersion = 8, kOpset = 13;
constexpr uint64_t kMaxBytes = std::numeric_limits<int32_t>::max();

// Numbers of fields, message by message, and of types: from onnx.proto.
enum ModelField : uint32_t {
  kModelIrVersion = 1,
  kModelProducerName = 2,
  kModelProducerVersion = 3,
  kModelGraph = 7,
  kModelOpset = 8,
  kModelMetadata = 14
};
enum OpsetField : uint32_t { kOpsetVersion = 2 };  // without a domain it is ONNX's own
enum EntryField : uint32_t { kEntryKey = 1, kEntryValue = 2 };
enum GraphField : uint32_t {
  kGraphNode = 1,
  kGraphName = 2,
  kGraphInitializer = 5,
  kGraphInput = 11,
  kGraphOutput = 12
};
enum NodeField : uint32_t { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5 };
enum AttributeField : uint32_t { kAttributeName = 1, kAttributeInt = 3, kAttributeInts = 8, kAttributeType = 20 };
enum TensorField : uint32_t { kTensorDim = 1, kTensorDataType = 2, kTensorName = 8, kTensorRawData = 9 };
enum ValueField : uint32_t { kValueName = 1, kValueType = 2 };
enum TypeField : uint32_t { kTypeTensor = 1, kTypeTensorElement = 1, kTypeTensorShape = 2 };
enum ShapeField : uint32_t { kShapeDim = 1, kDimValue = 1, kDimName = 2 };
constexpr int64_t kInt = 2, kInts = 7;             // types of attributes
constexpr int64_t kFloatType = 1, kInt64Type = 7;  // of tensors

using Names = std::vector<std::string>;

ProtobufMessage integer(std::string_view name, int64_t value) {
  ProtobufMessage message;
  message.add_bytes(kAttributeName, name).add_int(kAttributeInt, value);
  message.add_int(kAttributeType, kInt);
  return message;
}

ProtobufMessage integers(std::string_view name, std::initializer_list<int64_t> values) {
  ProtobufMessage message;
  message.add_bytes(kAttributeName, name);
  for (const int64_t value : values) message.add_int(kAttributeInts, value);
  message.add_int(kAttributeType, kInts);
  return message;
}

ProtobufMessage pair(std::string_view name, const Extent2& extent) {
  return integers(name, {extent.h, extent.w});
}

ProtobufMessage pads(const Node& node) {
  return integers("pads", {node.padding.h, node.padding.w, node.padding.h, node.padding.w});
}

// One image's shape behind any number of images.
ProtobufMessage batched_value(const Node& node) {
  ProtobufMessage shape, batch;
  shape.add_message(kShapeDim, batch.add_bytes(kDimName, "batch"));
  for (const int64_t extent : node.shape) {
    ProtobufMessage dim;
    shape.add_message(kShapeDim, dim.add_int(kDimValue, extent));
  }
  ProtobufMessage tensor_type, type, value;
  tensor_type.add_int(kTypeTensorElement, kFloatType).add_message(kTypeTensorShape, shape);
  type.add_message(kTypeTensor, tensor_type);
  value.add_bytes(kValueName, node.name).add_message(kValueType, type);
  return value;
}

// A shift as a depthwise convolution: its kernel is as large as its furthest tap that reaches the image.
struct MovedKernel {
  MovedKernel(const TapNet& net, const Node& node) : taps(moved_taps(net, node)) {
    for (const PlaneTap& tap : taps.taps) {
      up = std::max<int64_t>(up, -tap.down);
      down = std::max<int64_t>(down, tap.down);
      left = std::max<int64_t>(left, -tap.right);
      right = std::max<int64_t>(right, tap.right);
    }
  }

  Extent2 size() const { return {up + down + 1, left + right + 1}; }

  std::vector<float> weights() const {
    const auto channels = static_cast<int64_t>(taps.from.size()) - 1;
    std::vector<float> values(static_cast<size_t>(channels * size().area()), 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = taps.from[static_cast<size_t>(c)]; i < taps.from[static_cast<size_t>(c) + 1]; ++i) {
        const PlaneTap& tap = taps.taps[static_cast<size_t>(i)];
        const int64_t at = (c * size().h + up + tap.down) * size().w + left + tap.right;
        values[static_cast<size_t>(at)] = tap.weight;
      }
    }
    return values;
  }

  PlaneTaps taps;
  int64_t up = 0, down = 0, left = 0, right = 0;  // how far taps lie from the pixel, which is the padding too
};

// Writes the GraphProto. Names made here cannot meet those of nodes: a node's name has no slash, and is not the front
// part (before a dot) of another's.
class GraphWriter {
 public:
  explicit GraphWriter(const TapNet& net) : net_(net) {}

  ProtobufMessage write() {
    message_.add_bytes(kGraphName, net_.graph.name());
    message_.add_message(kGraphInput, batched_value(net_.graph.input()));
    message_.add_message(kGraphOutput, batched_value(net_.graph.node(net_.graph.output())));
    for (const Node& node : net_.graph.nodes()) write_node(node);
    return std::move(message_);
  }

 private:
  void write_node(const Node& node) {
    switch (node.op) {
      case Op::kInput:
        return;
      case Op::kConv:
      case Op::kTapConv:
        return add("Conv", node.name, with_parameters(node),
                   {pair("kernel_shape", node.kernel), pair("strides", node.stride), pads(node),
                    pair("dilations", node.dilation), integer("group", node.groups)});
      case Op::kLinear:
        return add("Gemm", node.name, with_parameters(node), {integer("transB", 1)});
      case Op::kAffine:
        return write_affine(node);
      case Op::kRelu:
        return add("Relu", node.name, node.inputs);
      case Op::kAdd:
        return add(node.inputs.size() == 2 ? "Add" : "Sum", node.name, node.inputs);
      case Op::kConcat:
        return add("Concat", node.name, node.inputs, {integer("axis", 1)});
      case Op::kAvgPool:
        return add("AveragePool", node.name, node.inputs,
                   {pair("kernel_shape", node.kernel), pair("strides", node.stride), pads(node),
                    integer("count_include_pad", 1)});
      case Op::kMaxPool:
        return add("MaxPool", node.name, node.inputs,
                   {pair("kernel_shape", node.kernel), pair("strides", node.stride), pads(node)});
      case Op::kGlobalAvgPool:
        add("GlobalAveragePool", node.name + "/mean", node.inputs);
        return add("Flatten", node.name, {node.name + "/mean"}, {integer("axis", 1)});
      case Op::kSubsample:
        return write_subsample(node);
      case Op::kFlatten:
        return add("Flatten", node.name, node.inputs, {integer("axis", 1)});
      case Op::kShift:
      case Op::kActiveShift:
        return write_moved(node);
      case Op::kBatchNorm:
        break;  // not in a frozen network
    }
    fail("[emit] {}: op without an ONNX form", node.name);
  }

  // A product and a sum round as the reference executor does; a BatchNormalization would divide by a root.
  void write_affine(const Node& node) {
    const Names inputs = with_parameters(node);
    add("Mul", node.name + "/scaled", {inputs[0], inputs[1]});
    add("Add", node.name, {node.name + "/scaled", inputs[2]});
  }

  void write_moved(const Node& node) {
    const MovedKernel kernel(net_, node);
    const Extent2 size = kernel.size();
    add("Conv", node.name,
        {node.inputs[0], add_floats(node.name + ".weight", {node.shape[0], 1, size.h, size.w}, kernel.weights())},
        {pair("kernel_shape", size), pair("strides", node.stride),
         integers("pads", {kernel.up, kernel.left, kernel.down, kernel.right}), integer("group", node.shape[0])});
  }

  void write_subsample(const Node& node) {
    const Shape& in = net_.graph.source(node).shape;
    const int64_t front = (node.out - in[0]) / 2, behind = node.out - in[0] - front;
    add("Slice", node.name + "/pixels",
        {node.inputs[0], add_integers(node.name + ".starts", {0, 0}), add_integers(node.name + ".ends", {in[1], in[2]}),
         add_integers(node.name + ".axes", {2, 3}),
         add_integers(node.name + ".steps", {node.stride.h, node.stride.w})});
    add("Pad", node.name,
        {node.name + "/pixels", add_integers(node.name + ".pads", {0, front, 0, 0, 0, behind, 0, 0})});
  }

  // An operator called like the one value it makes.
  void add(const char* type, const std::string& output, const Names& inputs,
           std::initializer_list<ProtobufMessage> attributes = {}) {
    ProtobufMessage message;
    for (const std::string& input : inputs) message.add_bytes(kNodeInput, input);
    message.add_bytes(kNodeOutput, output).add_bytes(kNodeName, output);
    message.add_bytes(kNodeOpType, type);
    for (const ProtobufMessage& one : attributes) message.add_message(kNodeAttribute, one);
    message_.add_message(kGraphNode, message);
  }

  // The node's input and the names of its parameters, which are added.
  Names with_parameters(const Node& node) {
    const Shape per_channel = {node.shape[0], 1, 1};  // numpy's rules repeat it over the pixels
    const bool is_affine = node.op == Op::kAffine;
    Names names = {node.inputs[0],
                   add_floats(node.name + ".weight", is_affine ? per_channel : dense_shape(net_.graph, node),
                              dense_weight(net_, node))};
    const Tensor& bias = net_.tensors(node).bias;
    if (!bias.empty()) {
      names.push_back(add_tensor(node.name + ".bias", kFloatType, is_affine ? per_channel : Shape{node.out},
                                 floats_of(node, bias), bias.bytes()));
    }
    return names;
  }

  std::string add_floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    return add_tensor(name, kFloatType, shape, values.data(), values.size() * sizeof(float));
  }

  std::string add_integers(const std::string& name, const std::vector<int64_t>& values) {
    return add_tensor(name, kInt64Type, {static_cast<int64_t>(values.size())}, values.data(),
                      values.size() * sizeof(int64_t));
  }

  // Raw data are little-endian, as is every machine that onetap runs on.
  std::string add_tensor(const std::string& name, int64_t type, const Shape& shape, const void* data, size_t bytes) {
    ProtobufMessage message;
    for (const int64_t extent : shape) message.add_int(kTensorDim, extent);
    message.add_int(kTensorDataType, type).add_bytes(kTensorName, name);
    message.add_bytes(kTensorRawData, {static_cast<const char*>(data), bytes});
    message_.add_message(kGraphInitializer, message);
    return name;
  }

  const TapNet& net_;
  ProtobufMessage message_;
};

void check_size(const TapNet& net, uint64_t bytes) {
  if (bytes <= kMaxBytes) return;
  fail_usage("[emit] expected a network that is below 2 GiB with its pruned weights as zeros, got {} bytes ({})", bytes,
             net.graph.name());
}

// Before any of it is made: a large kernel with one tap grows by its area.
uint64_t weight_bytes(const TapNet& net) {
  uint64_t bytes = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kShift || node.op == Op::kActiveShift) {
      bytes += static_cast<uint64_t>(node.shape[0] * MovedKernel(net, node).size().area()) * sizeof(float);
      continue;
    }
    const Shape shape = dense_shape(net.graph, node);
    if (!shape.empty()) bytes += static_cast<uint64_t>(element_count(shape)) * sizeof(float);
  }
  return bytes;
}

// Strings of a model must be UTF-8; facts may be anything.
std::string as_utf8(const std::string& text) {
  return encode_utf8(decode_utf8(text));
}

}  // namespace

std::string onnx_model(const TapNet& net) {
  check_tap_net(net);
  check_size(net, weight_bytes(net));
  ProtobufMessage message, opset;
  message.add_int(kModelIrVersion, kIrVersion);
  message.add_bytes(kModelProducerName, "onetap").add_bytes(kModelProducerVersion, ONETAP_VERSION);
  message.add_message(kModelOpset, opset.add_int(kOpsetVersion, kOpset));
  for (const auto& [key, value] : tap_metadata(net)) {
    ProtobufMessage entry;
    entry.add_bytes(kEntryKey, as_utf8(key)).add_bytes(kEntryValue, as_utf8(value));
    message.add_message(kModelMetadata, entry);
  }
  message.add_message(kModelGraph, GraphWriter(net).write());
  check_size(net, message.bytes().size());
  return std::move(message).bytes();
}

}  // namespace onetap
