#include "onetap/onnx/converter.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/op.h"
#include "onetap/onnx/int8_net.h"
#include "onetap/onnx/names.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

constexpr const char* kOtherActivation =
    "an activation that networks have in its place: Relu, Clip 0..6, Sigmoid, HardSigmoid, HardSwish or x * Sigmoid(x)";
constexpr const char* kOtherNorm = "BatchNormalization in its place";

constexpr size_t kMaxNotes = 20;

// Numbers that operators of constants may compute in all: for each one that was read from the model, and besides.
constexpr int64_t kFoldedOfOne = 16, kFoldedFreely = 1 << 24;

}  // namespace

void Operator::refuse(const std::string& expected) const {
  fail_data("[onnx] {}: expected {} ({})", where(), expected, label_);
}

void Operator::refuse(const Error& problem) const {
  throw Error(problem.kind(), fmt::format("[onnx] {}: {}", where(), without_module(problem.what())));
}

void Operator::check_extents(size_t count) const {
  if (count > kMaxOnnxExtents) refuse(fmt::format("at most {} extents, got {}", kMaxOnnxExtents, count));
}

std::string Operator::where() const {
  // Some exporters name values alone.
  const bool is_named = !node.name().empty() || node.output_size() == 0;
  return fmt::format("{} '{}' (opset {})", node.op_type(), is_named ? node.name() : node.output(0), opset);
}

const onnx::Attribute* Operator::find(std::string_view name) const {
  for (const onnx::Attribute& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t Operator::integer(std::string_view name, int64_t usual) const {
  const onnx::Attribute* found = find(name);
  return found == nullptr ? usual : found->i();
}

float Operator::real(std::string_view name, float usual) const {
  const onnx::Attribute* found = find(name);
  return found == nullptr ? usual : found->f();
}

std::string Operator::word(std::string_view name, std::string_view usual) const {
  const onnx::Attribute* found = find(name);
  return found == nullptr ? std::string(usual) : found->s();
}

std::optional<std::vector<int64_t>> Operator::integers(std::string_view name) const {
  const onnx::Attribute* found = find(name);
  if (found == nullptr) return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

Extent2 Operator::pair(std::string_view name, int64_t usual) const {
  const auto given = integers(name);
  if (!given) return {usual, usual};
  if (given->size() != 2) refuse(fmt::format("two numbers in {} (a 2-d network), got {}", name, given->size()));
  constexpr int64_t kMost = 1 << 20;
  for (const int64_t value : *given) {
    if (value < 0 || value > kMost) refuse(fmt::format("numbers in 0..{} in {}, got {}", kMost, name, value));
  }
  return {(*given)[0], (*given)[1]};
}

Converter::Converter(const ModelSource& source, const ImportOptions& options)
    : source_(source), options_(options), nodes_(flat_nodes(source)) {
  for (const onnx::Tensor& tensor : source.model().graph().initializer()) {
    if (!initialisers_.emplace(tensor.name(), &tensor).second) {
      refuse_model(fmt::format("one initialiser called '{}', got two", tensor.name()));
    }
  }
}

void Converter::refuse_model(const std::string& expected) const {
  fail_data("[onnx] expected {} ({})", expected, source_.label());
}

void Converter::read_input() {
  const onnx::Value* image = nullptr;
  for (const onnx::Value& value : source_.model().graph().input()) {
    if (initialisers_.count(value.name()) > 0) continue;  // old models list them
    if (image != nullptr) {
      refuse_model(fmt::format("one input, got '{}' and '{}'", image->name(), value.name()));
    }
    image = &value;
  }
  if (image == nullptr) refuse_model("an input, got none");
  const onnx::Type::TensorType& type = image->type().tensor_type();
  if (type.elem_type() != onnx::Tensor::FLOAT) {
    refuse_model(fmt::format("an input of floats, got type {} of '{}'", type.elem_type(), image->name()));
  }
  const auto& dims = type.shape().dim();
  Shape shape;
  bool is_open = dims.empty();
  for (int i = 1; i < dims.size(); ++i) {
    shape.push_back(dims[i].dim_value());
    if (dims[i].dim_value() < 1) is_open = true;
  }
  if (!options_.shape.empty()) {
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool fits = shape.size() == options_.shape.size() && (shape[i] < 1 || shape[i] == options_.shape[i]);
      if (!fits) {
        fail_usage("[onnx] expected images of shape {}, got --shape {} ({})", shape_text(shape),
                   shape_text(options_.shape), source_.label());
      }
    }
    shape = options_.shape;
  } else if (is_open) {
    refuse_model(fmt::format("fixed extents of the input '{}', got open ones: give --shape CxHxW", image->name()));
  }
  if (!dims.empty() && dims[0].dim_value() > 0) batch_ = dims[0].dim_value();
  if (batch_ > kMaxBatch) refuse_model(fmt::format("a batch of at most {} images, got {}", kMaxBatch, batch_));
  if (shape.size() != 1 && shape.size() != 3) {
    refuse_model(fmt::format("an input of images [batch, C, H, W], got {} extents behind the batch", shape.size()));
  }
  Draft draft;
  draft.node = default_node(Op::kInput);
  draft.node.name = "the input";
  draft.node.shape = shape;
  try {
    draft.node.shape = infer_shape(draft.node, {});
  } catch (const Error& problem) {
    throw Error(options_.shape.empty() ? ErrorKind::kData : ErrorKind::kUsage,
                fmt::format("[onnx] {} ({})", without_module(problem.what()), source_.label()));
  }
  draft.wishes = operator_names(image->name(), "input");
  drafts_.push_back(std::move(draft));
  values_[image->name()] = {nullptr, 0, shape};
}

void Converter::read_output() {
  const auto& outputs = source_.model().graph().output();
  if (outputs.size() != 1) refuse_model(fmt::format("one output, got {}", outputs.size()));
  output_name_ = outputs[0].name();
}

// The operators that the output needs, and how many read each value.
void Converter::find_needed() {
  std::unordered_map<std::string, size_t> maker;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& output : nodes_[i].node.output()) {
      if (!output.empty() && !maker.emplace(output, i).second) {
        refuse_model(fmt::format("every value to be made once, got '{}' twice", output));
      }
    }
  }
  is_needed_.assign(nodes_.size(), false);
  std::vector<std::string> open = {output_name_};
  while (!open.empty()) {
    const auto found = maker.find(open.back());
    open.pop_back();
    if (found == maker.end() || is_needed_[found->second]) continue;
    is_needed_[found->second] = true;
    for (const std::string& input : nodes_[found->second].node.input()) {
      if (!input.empty()) open.push_back(input);
    }
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!is_needed_[i]) continue;
    for (const std::string& input : nodes_[i].node.input()) ++readers_[input];
  }
  ++readers_[output_name_];
  unread_ = readers_;
}

bool Converter::has_one_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second != 1) return false;
  const auto made = values_.find(value);
  return made == values_.end() || made->second.is_constant() ||
         !drafts_[static_cast<size_t>(made->second.draft)].is_shared;
}

const OnnxValue& Converter::input(const Operator& op, int index) {
  if (index >= op.node.input_size()) {
    op.refuse(fmt::format("{} inputs or more, got {}", index + 1, op.node.input_size()));
  }
  if (!op.has_input(index)) op.refuse(fmt::format("a name of input {}, got none", index + 1));
  const std::string& name = op.node.input(index);
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  const auto initialiser = initialisers_.find(name);
  if (initialiser == initialisers_.end()) {
    op.refuse(
        fmt::format("an input that was made before, got '{}' (a cycle, nodes out of order, or a missing value)", name));
  }
  OnnxValue& value = values_[name];
  value.constant = std::make_shared<OnnxConstant>(constant(op, *initialiser->second));
  return value;
}

OnnxConstant Converter::constant(const Operator& op, const onnx::Tensor& tensor) {
  OnnxConstant read;
  try {
    read = source_.constant(tensor);
  } catch (const Error& problem) {
    op.refuse(problem);
  }
  // Tensors may have their data in the same place of a file.
  constexpr int64_t kMost = kMaxOnnxWeights + (1 << 24);  // scales and shapes, besides
  read_count_ += static_cast<int64_t>(read.count());
  if (read_count_ > kMost) op.refuse(fmt::format("constants of at most {} numbers in all, got more", kMost));
  return read;
}

OnnxValue Converter::folded(const Operator& op, OnnxConstant constant) {
  op.check_extents(constant.dims.size());
  folded_count_ += static_cast<int64_t>(constant.count());
  if (constant.bytes)
    folded_count_ += static_cast<int64_t>(constant.bytes->values.size() + constant.bytes->scales.size());
  const int64_t most = kFoldedFreely + kFoldedOfOne * read_count_;
  if (folded_count_ > most) {
    op.refuse(fmt::format("at most {} numbers computed of the model's {}, got more", most, read_count_));
  }
  OnnxValue value;
  value.constant = std::make_shared<OnnxConstant>(std::move(constant));
  return value;
}

const OnnxValue& Converter::computed(const Operator& op, int index) {
  const OnnxValue& value = input(op, index);
  if (value.is_constant()) op.refuse(fmt::format("input {} to be computed from the image, got a constant", index));
  if (value.is_bytes && op.node.op_type() != "DequantizeLinear") {
    op.refuse(fmt::format("input {} in floats (a DequantizeLinear before it), got bytes", index));
  }
  if (value.mean_axis != 0 && op.node.op_type() != "ReduceMean") {
    op.refuse(
        fmt::format("input {} to be an image or a mean over rows and columns, got a mean over one of them", index));
  }
  return value;
}

const OnnxConstant& Converter::floats(const Operator& op, int index) {
  const OnnxValue& value = input(op, index);
  if (!value.is_constant() || !value.constant->is_float()) {
    op.refuse(fmt::format("a constant of floats as input {}, got {}", index,
                          value.is_constant() ? "whole numbers" : "a computed value"));
  }
  return *value.constant;
}

const std::vector<int64_t>& Converter::integers(const Operator& op, int index) {
  const OnnxValue& value = input(op, index);
  if (!value.is_constant() || value.constant->is_float()) {
    op.refuse(fmt::format("constant whole numbers as input {}, got {}", index,
                          value.is_constant() ? "floats" : "a computed value"));
  }
  return value.constant->integers();
}

std::vector<int64_t> Converter::axes(const Operator& op, size_t rank) {
  std::vector<int64_t> list = op.integers("axes").value_or(std::vector<int64_t>{});
  if (op.has_input(1)) list = integers(op, 1);
  if (list.size() > kMaxOnnxExtents) op.refuse(fmt::format("at most {} axes, got {}", kMaxOnnxExtents, list.size()));
  for (int64_t& axis : list) {
    axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) op.refuse(fmt::format("axes of {} extents, got others", rank));
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<int64_t> Converter::unsqueezed(const Operator& op, std::vector<int64_t> dims) {
  const size_t added =
      op.has_input(1) ? integers(op, 1).size() : op.integers("axes").value_or(std::vector<int64_t>{}).size();
  const std::vector<int64_t> places = axes(op, dims.size() + added);
  const auto twice = std::adjacent_find(places.begin(), places.end());
  if (twice != places.end()) op.refuse(fmt::format("axes that differ, got {} twice", *twice));
  op.check_extents(dims.size() + added);
  for (const int64_t axis : places) dims.insert(dims.begin() + axis, 1);
  return dims;
}

std::vector<int64_t> Converter::squeezed(const Operator& op, const std::vector<int64_t>& dims, size_t kept) {
  const std::vector<int64_t> named = axes(op, dims.size());
  std::vector<int64_t> left;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_named = std::find(named.begin(), named.end(), static_cast<int64_t>(i)) != named.end();
    if (is_named && dims[i] != 1) op.refuse(fmt::format("extents of 1 to take away, got {}", dims[i]));
    if (!is_named && !(named.empty() && i >= kept && dims[i] == 1)) left.push_back(dims[i]);
  }
  return left;
}

OnnxValue Converter::add(const Operator& op, Draft draft, const std::vector<OnnxValue>& inputs) {
  std::vector<Shape> shapes;
  for (const OnnxValue& value : inputs) {
    draft.inputs.push_back(value.draft);
    shapes.push_back(shape(value));
  }
  draft.node.name = op.node.name().empty() ? op.node.op_type() : op.node.name();
  draft.where = op.where();
  try {
    // Linear layers behind an affine of a vector take it in.
    const bool is_open = draft.node.op == Op::kAffine && shapes[0].size() == 1;
    draft.node.shape = is_open ? shapes[0] : infer_shape(draft.node, shapes);
  } catch (const Error& problem) {
    op.refuse(fmt::format("what a network can have: {}", without_module(problem.what())));
  }
  const std::vector<std::string> names = operator_names(op.node.name(), op.node.op_type());
  draft.wishes.insert(draft.wishes.end(), names.begin(), names.end());
  drafts_.push_back(std::move(draft));
  return {nullptr, static_cast<int>(drafts_.size()) - 1, drafts_.back().node.shape};
}

OnnxValue Converter::add(const Operator& op, Op kind, const std::vector<OnnxValue>& inputs) {
  Draft draft;
  draft.node = default_node(kind);
  OnnxValue made = add(op, std::move(draft), inputs);
  if (shape(made) == shape(inputs[0])) made.dims = inputs[0].dims;  // may be Cx1x1
  return made;
}

std::vector<float> Converter::weights(const Operator& op, const OnnxConstant& constant) {
  count_weights(op, static_cast<int64_t>(constant.count()));
  const bool finite =
      std::all_of(constant.floats().begin(), constant.floats().end(), [](float value) { return std::isfinite(value); });
  if (!finite) op.refuse("finite weights, got NaN or infinity");
  return constant.floats();
}

void Converter::count_weights(const Operator& op, int64_t count) {
  weight_count_ += count;
  if (weight_count_ > kMaxOnnxWeights) op.refuse("a network of at most 2^30 weights, got more");
}

bool Converter::reads_constants_alone(const Operator& op) {
  for (int i = 0; i < op.node.input_size(); ++i) {
    if (op.has_input(i) && !input(op, i).is_constant()) return false;
  }
  return true;
}

namespace {

// What a network would need in place of an operator that is not read.
const char* operator_in_place_of(const std::string& type) {
  static const std::map<std::string_view, const char*> names = {
      {"LeakyRelu", kOtherActivation},
      {"PRelu", kOtherActivation},
      {"Elu", kOtherActivation},
      {"Selu", kOtherActivation},
      {"Celu", kOtherActivation},
      {"Gelu", kOtherActivation},
      {"Erf", kOtherActivation},
      {"Mish", kOtherActivation},
      {"Tanh", kOtherActivation},
      {"Softplus", kOtherActivation},
      {"InstanceNormalization", kOtherNorm},
      {"LayerNormalization", kOtherNorm},
      {"GroupNormalization", kOtherNorm},
      {"LRN", kOtherNorm},
      {"LpPool", "MaxPool or AveragePool in its place"},
      {"GlobalLpPool", "GlobalAveragePool in its place"},
      {"QLinearConv", "a model quantized as QDQ (QuantizeLinear and DequantizeLinear)"},
      {"QLinearMatMul", "a model quantized as QDQ (QuantizeLinear and DequantizeLinear)"},
      {"ConvInteger", "a model quantized as QDQ (QuantizeLinear and DequantizeLinear)"},
  };
  const auto found = names.find(type);
  return found == names.end() ? "an operator of a plain classification network" : found->second;
}

}  // namespace

void Converter::convert_node(const FlatNode& flat) {
  const Operator op(flat, source_.label());
  ConvertOperator found = nullptr;
  if (is_onnx_domain(flat.node.domain())) {
    if (reads_constants_alone(op)) found = find_constant_operator(flat.node.op_type());
    for (const auto find : {find_layer_operator, find_function_operator, find_plain_operator, find_shape_operator,
                            find_rounding_operator}) {
      if (found == nullptr) found = find(flat.node.op_type());
    }
  }
  if (found == nullptr) {
    op.refuse(is_onnx_domain(flat.node.domain())
                  ? fmt::format("{}; docs/onnx.md lists all operators", operator_in_place_of(flat.node.op_type()))
                  : fmt::format("an operator of ONNX itself, got one of domain '{}'", flat.node.domain()));
  }
  if (flat.node.output_size() < 1 || flat.node.output(0).empty()) op.refuse("an output, got none");
  for (int i = 1; i < flat.node.output_size(); ++i) {
    if (readers_.count(flat.node.output(i)) > 0 && !flat.node.output(i).empty()) {
      op.refuse(fmt::format("its first output to be used alone, got '{}' used", flat.node.output(i)));
    }
  }
  OnnxValue made = found(*this, op);
  if (!made.is_constant()) mark_shared(flat.node, made.draft);
  values_[flat.node.output(0)] = std::move(made);
  release_constants(flat.node);
}

// Those that nobody reads any more: weights are in the draft now.
void Converter::release_constants(const onnx::Node& node) {
  for (const std::string& name : node.input()) {
    if (--unread_.at(name) > 0) continue;
    const auto found = values_.find(name);
    if (found != values_.end() && found->second.is_constant()) values_.erase(found);
  }
}

// An operator that changes nothing gives its input another name: readers of either read the same value.
void Converter::mark_shared(const onnx::Node& node, int draft) {
  for (const std::string& name : node.input()) {
    const auto found = values_.find(name);
    if (found == values_.end() || found->second.draft != draft || readers_.at(name) == 1) continue;
    drafts_[static_cast<size_t>(draft)].is_shared = true;
  }
}

ImportedNet Converter::convert() {
  read_input();
  read_output();
  find_needed();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (is_needed_[i]) convert_node(nodes_[i]);
  }
  const auto result = values_.find(output_name_);
  const bool is_whole = result != values_.end() && !result->second.is_constant() && !result->second.is_bytes &&
                        result->second.mean_axis == 0;
  if (!is_whole) {
    refuse_model(fmt::format("an output of floats that is computed from the image, got '{}'", output_name_));
  }
  return build();
}

// Layers first, by their weights' names; then all others. Those that nobody needs have no name.
void Converter::name_drafts(const std::vector<bool>& is_needed) {
  NameTable names;
  for (const bool by_weight : {true, false}) {
    for (size_t i = 0; i < drafts_.size(); ++i) {
      Draft& draft = drafts_[i];
      if (is_needed[i] && draft.is_named_by_weight == by_weight) draft.node.name = names.take(draft.wishes);
    }
  }
}

// What is known only when all operators have been read.
void Converter::check_draft(const Draft& draft) const {
  const auto refuse = [&](const char* expected) {
    fail_data("[onnx] {}: expected {} ({})", draft.where, expected, source_.label());
  };
  if (draft.node.op == Op::kAffine && draft.node.shape.size() == 1) {
    refuse("a linear layer directly before or behind a batch norm, factors or terms of a vector");
  }
  for (const auto& [what, values] : draft.tensors) {
    const bool finite = std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
    if (!finite) refuse("weights that stay finite in the network, got infinity or NaN");
  }
}

ImportedNet Converter::build() {
  const int result = values_.at(output_name_).draft;
  std::vector<bool> is_needed(drafts_.size(), false);
  is_needed[0] = is_needed[static_cast<size_t>(result)] = true;
  for (size_t i = drafts_.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const int input : drafts_[i].inputs) is_needed[static_cast<size_t>(input)] = true;
  }
  name_drafts(is_needed);
  const std::string output = drafts_[static_cast<size_t>(result)].node.name;
  ImportedNet net;
  ImportedBytes bytes;
  net.graph = Graph(NameTable().take(operator_names(source_.model().graph().name(), "network")));
  for (size_t i = 0; i < drafts_.size(); ++i) {
    if (!is_needed[i]) continue;
    Draft& draft = drafts_[i];
    check_draft(draft);
    for (const int input : draft.inputs) draft.node.inputs.push_back(drafts_[static_cast<size_t>(input)].node.name);
    const std::string& name = net.graph.add(draft.node);
    if (draft.rounding) bytes.roundings[name] = *draft.rounding;
    if (draft.weight_bytes) bytes.layers[name] = {draft.weight_bytes, draft.bias_bytes, draft.where};
    for (auto& [what, values] : draft.tensors) {
      std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
      const Node& node = draft.node;
      if (what == "weight" && node.op != Op::kBatchNorm) shape = layer_shapes(net.graph, node).weight;
      net.tensors[fmt::format("{}.{}", name, what)] = Tensor::of(values, std::move(shape));
      values.clear();
      values.shrink_to_fit();
    }
  }
  net.graph.set_output(output);
  if (source_.model().producer_name() == "onetap") {
    for (const onnx::Entry& entry : source_.model().metadata_props()) net.metadata[entry.key()] = entry.value();
  }
  if (!bytes.roundings.empty()) {
    net.int8 = std::make_shared<TapNet>(int8_net(net, bytes, source_.label()));
  } else if (!bytes.layers.empty()) {
    notes_.push_back("weights are in integers and values are not: the weights were taken as the floats they stand for");
  }
  if (notes_.size() > kMaxNotes) notes_.resize(kMaxNotes);
  net.notes = std::move(notes_);
  return net;
}

ImportedNet import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  const ModelSource source = ModelSource::read(path);
  return Converter(source, options).convert();
}

ImportedNet parse_onnx(const std::string& bytes, std::string_view label, const ImportOptions& options) {
  const ModelSource source = ModelSource::parse(bytes, label);
  return Converter(source, options).convert();
}

}  // namespace onetap
