#include "onetap/onnx/writer.h"

#include "onetap/base/fail.h"
#include "onetap/base/utf8.h"
#include "onetap/base/version.h"
#include "onetap/graph/op.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/onnx/layer_facts.h"
#include "onetap/onnx/schema.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/tap/moved_kernel.h"
#include "onetap/tap/tap_file.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace onetap {
namespace {

constexpr uint64_t kMaxBytes = std::numeric_limits<int32_t>::max();

using Names = std::vector<std::string>;

onnx::Attribute attribute(std::string_view name, onnx::Attribute::Type type) {
  onnx::Attribute message;
  message.set_name(std::string(name));
  message.set_type(type);
  return message;
}

onnx::Attribute integer(std::string_view name, int64_t value) {
  onnx::Attribute message = attribute(name, onnx::Attribute::INT);
  message.set_i(value);
  return message;
}

onnx::Attribute real(std::string_view name, float value) {
  onnx::Attribute message = attribute(name, onnx::Attribute::FLOAT);
  message.set_f(value);
  return message;
}

onnx::Attribute integers(std::string_view name, std::initializer_list<int64_t> values) {
  onnx::Attribute message = attribute(name, onnx::Attribute::INTS);
  for (const int64_t value : values) message.add_ints(value);
  return message;
}

onnx::Attribute pair(std::string_view name, const Extent2& extent) {
  return integers(name, {extent.h, extent.w});
}

onnx::Attribute pads(const Node& node) {
  return integers("pads", {node.padding.h, node.padding.w, node.padding.h, node.padding.w});
}

// One image's shape behind the number of images.
onnx::Value batched_value(const Node& node, int64_t batch) {
  onnx::Value value;
  value.set_name(node.name);
  onnx::Type::TensorType& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::Tensor::FLOAT);
  onnx::Shape& shape = *type.mutable_shape();
  if (batch == 0) {
    shape.add_dim()->set_dim_param("batch");
  } else {
    shape.add_dim()->set_dim_value(batch);
  }
  for (const int64_t extent : node.shape) shape.add_dim()->set_dim_value(extent);
  return value;
}

// Whether all outputs of a tap convolution read each input at one place: moving the inputs and a 1x1 convolution.
bool is_moved_input(const Graph& graph, const Node& node) {
  if (node.op != Op::kTapConv || node.groups != 1) return false;
  const TapLayout layout = tap_layout(graph, node);
  return layout.taps == 1 && layout.share_outputs >= layout.outputs;
}

// That of a `shift`, and in int8 networks, has a centre: the reader would need a pad for other kernels, which int8
// networks and C do not have.
MovedKernel moved_kernel(const TapNet& net, const Node& node) {
  return {net, node, net.is_int8() || node.op == Op::kShift};
}

// Writes the GraphProto. Names made here cannot meet those of nodes: a node's name has no slash, and is not the front
// part (before a dot) of another's.
class GraphWriter {
 public:
  GraphWriter(const TapNet& net, const OnnxOptions& options, onnx::Graph& message)
      : net_(net), options_(options), message_(message) {
    if (!net.is_int8()) return;
    const Int8Plan plan = plan_int8(net);
    for (size_t i = 0; i < plan.values.size(); ++i) {
      if (plan.values[i].dtype != DType::kF32) values_[plan.plan.values[i].node->name] = plan.values[i];
    }
    for (const PlannedStep& step : plan.plan.steps) input_scales_[step.node->name] = plan.value(step.inputs[0]).scale;
  }

  void write() {
    message_.set_name(net_.graph.name());
    *message_.add_input() = batched_value(net_.graph.input(), options_.batch);
    *message_.add_output() = batched_value(net_.graph.node(net_.graph.output()), options_.batch);
    for (const Node& node : net_.graph.nodes()) {
      write_node(node);
      if (values_.count(node.name) > 0) write_rounding(node);
    }
  }

 private:
  void write_node(const Node& node) {
    switch (node.op) {
      case Op::kInput:
        return;
      case Op::kConv:
      case Op::kTapConv:
        if (options_.form == OnnxForm::kShift && is_moved_input(net_.graph, node)) return write_moved_input(node);
        return add("Conv", node.name, with_parameters(node),
                   {pair("kernel_shape", node.kernel), pair("strides", node.stride), pads(node),
                    pair("dilations", node.dilation), integer("group", node.groups)});
      case Op::kLinear:
        return add("Gemm", node.name, with_parameters(node), {integer("transB", 1)});
      case Op::kAffine:
        return write_affine(node);
      case Op::kRelu:
        return add("Relu", node.name, node.inputs);
      case Op::kRelu6:
        return add("Clip", node.name,
                   {node.inputs[0], add_floats(node.name + ".low", {}, {0}), add_floats(node.name + ".high", {}, {6})});
      case Op::kSigmoid:
        return add("Sigmoid", node.name, node.inputs);
      case Op::kHardSigmoid:
        return add("HardSigmoid", node.name, node.inputs, {real("alpha", 1.0f / 6), real("beta", 0.5f)});
      case Op::kHardSwish:
        return write_hard_swish(node);
      case Op::kSilu:
        add("Sigmoid", node.name + "/sigmoid", node.inputs);
        return add("Mul", node.name, {node.inputs[0], node.name + "/sigmoid"});
      case Op::kMul:
        return write_mul(node);
      case Op::kPad:
        return add("Pad", node.name,
                   {node.inputs[0],
                    add_integers(node.name + ".pads",
                                 {0, 0, node.sides[0], node.sides[1], 0, 0, node.sides[2], node.sides[3]}),
                    add_floats(node.name + ".fill", {}, {pad_value(node)})});
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
    fail("[onnx] {}: op without an ONNX form", node.name);
  }

  // int8: a value is rounded to bytes behind its node, and whoever reads it reads what the bytes stand for.
  void write_rounding(const Node& node) {
    const Int8Value& value = values_.at(node.name);
    const char zero = 0;
    const std::string scale = add_tensor(node.name + "/scale", onnx::Tensor::FLOAT, {}, &value.scale, sizeof(float));
    const std::string zero_point = add_tensor(
        node.name + "/zero", value.dtype == DType::kU8 ? onnx::Tensor::UINT8 : onnx::Tensor::INT8, {}, &zero, 1);
    add_operator("QuantizeLinear", node.name + "/bytes", {unrounded(node), scale, zero_point});
    add_operator("DequantizeLinear", read_name(node.name), {node.name + "/bytes", scale, zero_point});
  }

  // The name of a value before it is rounded, and of what others read of it. The network's input and output keep
  // theirs.
  std::string unrounded(const Node& node) const { return node.op == Op::kInput ? node.name : node.name + "/unrounded"; }
  std::string read_name(const std::string& name) const {
    return name == net_.graph.input().name && values_.count(name) > 0 ? name + "/rounded" : name;
  }

  // A product and a sum round as the reference executor does; a BatchNormalization would divide by a root.
  void write_affine(const Node& node) {
    const Names inputs = with_parameters(node);
    add("Mul", node.name + "/scaled", {inputs[0], inputs[1]});
    add("Add", node.name, {node.name + "/scaled", inputs[2]});
  }

  void write_hard_swish(const Node& node) {
    if (options_.opset >= 14) return add("HardSwish", node.name, node.inputs);
    add("HardSigmoid", node.name + "/gate", node.inputs, {real("alpha", 1.0f / 6), real("beta", 0.5f)});
    add("Mul", node.name, {node.inputs[0], node.name + "/gate"});
  }

  // One factor per channel is a plane of one pixel to numpy's rules.
  void write_mul(const Node& node) {
    std::string factor = node.inputs[1];
    if (node.shape.size() == 3 && net_.graph.node(factor).shape.size() == 1) {
      add("Unsqueeze", node.name + "/factor", {factor, add_integers(node.name + ".axes", {2, 3})});
      factor = node.name + "/factor";
    }
    add("Mul", node.name, {node.inputs[0], factor});
  }

  // A 1 in every channel's kernel, where all outputs read it (none where the weights were dropped), and the weights as
  // those of a 1x1 convolution.
  void write_moved_input(const Node& node) {
    const TapLayout layout = tap_layout(net_.graph, node);
    const LayerTensors& tensors = net_.tensors(node);
    std::vector<float> ones(static_cast<size_t>(layout.inputs * layout.positions), 0.0f);
    for (int64_t c = 0; c < layout.inputs; ++c) {
      const int64_t position = tensors.positions[static_cast<size_t>(layout.first_code(0, c))];
      if (position != layout.none()) ones[static_cast<size_t>(c * layout.positions + position)] = 1;
    }
    add("Conv", node.name + "/moved",
        {node.inputs[0], add_floats(node.name + ".shift", {layout.inputs, 1, node.kernel.h, node.kernel.w}, ones)},
        {pair("kernel_shape", node.kernel), pair("strides", node.stride), pads(node), pair("dilations", node.dilation),
         integer("group", layout.inputs)});
    Names names = {node.name + "/moved",
                   add_tensor(node.name + ".weight", onnx::Tensor::FLOAT, {layout.outputs, layout.inputs, 1, 1},
                              floats_of(node, tensors.weight), tensors.weight.bytes())};
    if (!tensors.bias.empty()) {
      names.push_back(add_tensor(node.name + ".bias", onnx::Tensor::FLOAT, {node.out}, floats_of(node, tensors.bias),
                                 tensors.bias.bytes()));
    }
    add("Conv", node.name, names, {pair("kernel_shape", {1, 1})});
  }

  void write_moved(const Node& node) {
    const MovedKernel kernel = moved_kernel(net_, node);
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

  void add(const char* type, const std::string& output, const Names& inputs,
           std::initializer_list<onnx::Attribute> attributes = {}) {
    Names read;
    for (const std::string& input : inputs) read.push_back(read_name(input));
    add_operator(type, values_.count(output) > 0 ? unrounded(net_.graph.node(output)) : output, read, attributes);
  }

  // An operator called like the one value it makes.
  void add_operator(const char* type, const std::string& output, const Names& inputs,
                    std::initializer_list<onnx::Attribute> attributes = {}) {
    onnx::Node& message = *message_.add_node();
    for (const std::string& input : inputs) message.add_input(input);
    message.add_output(output);
    message.set_name(output);
    message.set_op_type(type);
    for (const onnx::Attribute& one : attributes) *message.add_attribute() = one;
  }

  // The node's input and the names of its parameters, which are added.
  Names with_parameters(const Node& node) {
    if (net_.tensors(node).weight.dtype() == DType::kI8) return with_bytes(node);
    const Shape per_channel = {node.shape[0], 1, 1};  // numpy's rules repeat it over the pixels
    const bool is_affine = node.op == Op::kAffine;
    Names names = {node.inputs[0],
                   add_floats(node.name + ".weight", is_affine ? per_channel : dense_shape(net_.graph, node),
                              dense_weight(net_, node))};
    const Tensor& bias = net_.tensors(node).bias;
    if (!bias.empty()) {
      names.push_back(add_tensor(node.name + ".bias", onnx::Tensor::FLOAT, is_affine ? per_channel : Shape{node.out},
                                 floats_of(node, bias), bias.bytes()));
    }
    return names;
  }

  // Weights of bytes with a scale per output, a bias of 32-bit integers in the units of the layer's sums.
  Names with_bytes(const Node& node) {
    const LayerTensors& layer = net_.tensors(node);
    const auto outputs = static_cast<int64_t>(layer.scale.steps.size());
    std::vector<float> scales, units;
    std::vector<int32_t> bias;
    for (int64_t d = 0; d < outputs; ++d) {
      scales.push_back(static_cast<float>(layer.scale.of(d)));
      units.push_back(static_cast<float>(input_scales_.at(node.name) * layer.scale.of(d)));
      if (!layer.bias.empty()) bias.push_back(layer.bias.data<int16_t>()[d] * (1 << layer.scale.bias_shift));
    }
    const bool is_affine = node.op == Op::kAffine;
    const Shape shape = is_affine ? Shape{outputs, 1, 1} : dense_shape(net_.graph, node);
    const std::vector<int8_t> bytes = dense_bytes(net_, node);
    Names names = {node.inputs[0],
                   add_scaled(node.name + ".weight", onnx::Tensor::INT8, shape, bytes.data(), bytes.size(), scales)};
    if (!bias.empty()) {
      names.push_back(add_scaled(node.name + ".bias", onnx::Tensor::INT32,
                                 is_affine ? Shape{outputs, 1, 1} : Shape{outputs}, bias.data(),
                                 bias.size() * sizeof(int32_t), units));
    }
    return names;
  }

  // Integers with a scale per output, as floats.
  std::string add_scaled(const std::string& name, onnx::Tensor::DataType type, const Shape& shape, const void* data,
                         size_t bytes, const std::vector<float>& scales) {
    const std::string integers_name = add_tensor(name + "/bytes", type, shape, data, bytes);
    const std::string scale = add_floats(name + "/scale", {static_cast<int64_t>(scales.size())}, scales);
    add_operator("DequantizeLinear", name, {integers_name, scale}, {integer("axis", 0)});
    return name;
  }

  std::string add_floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    return add_tensor(name, onnx::Tensor::FLOAT, shape, values.data(), values.size() * sizeof(float));
  }

  std::string add_integers(const std::string& name, const std::vector<int64_t>& values) {
    return add_tensor(name, onnx::Tensor::INT64, {static_cast<int64_t>(values.size())}, values.data(),
                      values.size() * sizeof(int64_t));
  }

  // Raw data are little-endian, as is every machine that onetap runs on.
  std::string add_tensor(const std::string& name, onnx::Tensor::DataType type, const Shape& shape, const void* data,
                         size_t bytes) {
    onnx::Tensor& message = *message_.add_initializer();
    for (const int64_t extent : shape) message.add_dims(extent);
    message.set_data_type(type);
    message.set_name(name);
    message.set_raw_data(data, bytes);
    return name;
  }

  const TapNet& net_;
  const OnnxOptions& options_;
  onnx::Graph& message_;
  std::map<std::string, Int8Value> values_;    // int8: by the node whose result it is
  std::map<std::string, float> input_scales_;  // int8: of what a layer reads
};

void check_size(const TapNet& net, uint64_t bytes) {
  if (bytes <= kMaxBytes) return;
  fail_usage("[onnx] expected a network that is below 2 GiB with its pruned weights as zeros, got {} bytes ({})", bytes,
             net.graph.name());
}

// Before any of it is made: a large kernel with one tap grows by its area.
uint64_t weight_bytes(const TapNet& net) {
  uint64_t bytes = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op == Op::kShift || node.op == Op::kActiveShift) {
      bytes += static_cast<uint64_t>(node.shape[0] * moved_kernel(net, node).size().area()) * sizeof(float);
      continue;
    }
    const Shape shape = dense_shape(net.graph, node);
    if (!shape.empty()) bytes += static_cast<uint64_t>(element_count(shape)) * sizeof(float);
  }
  return bytes;
}

void check_options(const TapNet& net, const OnnxOptions& options) {
  if (options.opset < kFirstOnnxOpset || options.opset > kLastOnnxOpset) {
    fail_usage("[onnx] expected an opset in {}..{}, got {}", kFirstOnnxOpset, kLastOnnxOpset, options.opset);
  }
  if (options.batch < 0) fail_usage("[onnx] expected a batch of 1 or more images, got {}", options.batch);
  if (options.form == OnnxForm::kDense) return;
  if (net.is_int8())
    fail_usage("[onnx] expected a network of floats for the form shift, got an int8 one ({})", net.graph.name());
  const auto& nodes = net.graph.nodes();
  if (std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return is_moved_input(net.graph, node); }))
    return;
  fail_usage(
      "[onnx] expected a tapconv with one tap that all outputs share (share=all) for the form shift, got none ({})",
      net.graph.name());
}

// Strings of a model must be UTF-8; facts may be anything.
std::string as_utf8(const std::string& text) {
  return encode_utf8(decode_utf8(text));
}

}  // namespace

std::string onnx_model(const TapNet& net, const OnnxOptions& options) {
  check_tap_net(net);
  check_options(net, options);
  check_size(net, weight_bytes(net));
  onnx::Model message;
  message.set_ir_version(options.opset >= 19 ? 9 : 8);
  message.set_producer_name("onetap");
  message.set_producer_version(ONETAP_VERSION);
  message.add_opset_import()->set_version(options.opset);  // without a domain it is ONNX's own
  for (const auto& [key, value] : tap_metadata(net)) {
    onnx::Entry& entry = *message.add_metadata_props();
    entry.set_key(as_utf8(key));
    entry.set_value(as_utf8(value));
  }
  // In the form shift, the layers that have one are written as others.
  if (const std::string facts = layer_facts_text(net);
      net.is_int8() || (options.form == OnnxForm::kDense && facts != "{}")) {
    onnx::Entry& entry = *message.add_metadata_props();
    entry.set_key(net.is_int8() ? kInt8FactsKey : kFloatFactsKey);
    entry.set_value(facts);
  }
  GraphWriter(net, options, *message.mutable_graph()).write();
  check_size(net, message.ByteSizeLong());
  return message.SerializeAsString();
}

}  // namespace onetap
