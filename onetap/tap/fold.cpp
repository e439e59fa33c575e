#include "onetap/tap/fold.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/uses.h"

namespace onetap {
namespace {

constexpr int64_t kMostPadding = 1024;  // of a convolution

// Names of the convolutions whose result only one batch norm reads, by the name of that batch norm.
std::map<std::string, std::string> foldable(const Graph& graph, const Uses& uses) {
  std::map<std::string, std::string> conv_of;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConv) continue;
    const Node* reader = uses.only_reader(node);
    if (reader != nullptr && reader->op == Op::kBatchNorm) conv_of[reader->name] = node.name;
  }
  return conv_of;
}

bool is_dense_pointwise(const Node& node) {
  const MethodInfo& method = node.method.info();
  return node.op == Op::kConv && node.kernel.area() == 1 && node.padding == Extent2{0, 0} && node.groups == 1 &&
         method.frozen == Op::kConv && method.frozen_method.empty();
}

// What a 1x1 convolution of a moved image pads the image by.
Extent2 shift_padding(const Node& shift) {
  return {shift.dilation.h * (shift.kernel.h / 2), shift.dilation.w * (shift.kernel.w / 2)};
}

// The shifts that only a 1x1 convolution reads, by the name of that convolution.
std::map<std::string, const Node*> foldable_shifts(const Graph& graph, const Uses& uses) {
  std::map<std::string, const Node*> shift_of;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kShift) continue;
    const Node* reader = uses.only_reader(node);
    const Extent2 padding = shift_padding(node);
    if (reader == nullptr || !is_dense_pointwise(*reader)) continue;
    if (padding.h <= kMostPadding && padding.w <= kMostPadding) shift_of[reader->name] = &node;
  }
  return shift_of;
}

// The convolution as one of the shift's kernel, with one tap of each input.
void take_in_shift(const Node& shift, Node& conv) {
  conv.inputs = shift.inputs;
  conv.op = Op::kTapConv;
  conv.kernel = shift.kernel;
  conv.dilation = shift.dilation;
  conv.padding = shift_padding(shift);
  conv.method = frozen_taps(1, conv.out);
}

void freeze_method(const Graph& trained, Node& node) {
  const MethodInfo& method = node.method.info();
  // A tapconv too: its blocks in numbers, as files have them.
  if (node.op == Op::kTapConv || (node.op == Op::kConv && method.frozen == Op::kTapConv)) {
    node.method = frozen_taps(tap_layout(trained, trained.node(node.name)));
    node.op = Op::kTapConv;
  } else if (node.op == Op::kConv || node.op == Op::kLinear) {
    node.method = method.frozen_method.empty() ? Method{} : Method(*find_frozen_method(method.frozen_method));
  }
}

}  // namespace

FrozenForm frozen_form(const Graph& trained) {
  const Uses uses(trained);
  const std::map<std::string, std::string> conv_of = foldable(trained, uses);
  const std::map<std::string, const Node*> shift_of = foldable_shifts(trained, uses);
  FrozenForm form;
  form.graph = Graph(trained.name());
  for (const auto& [batch_norm, conv] : conv_of) form.folded[conv] = batch_norm;
  for (const auto& [conv, shift] : shift_of) form.shifted[conv] = shift_codes(*shift, shift->shape[0]);

  const auto frozen_name = [&](const std::string& name) {
    const auto found = conv_of.find(name);
    return found == conv_of.end() ? name : found->second;
  };
  const auto is_folded = [&](const Node& node) {
    if (node.op == Op::kBatchNorm) return conv_of.count(node.name) != 0;
    const Node* reader = node.op == Op::kShift ? uses.only_reader(node) : nullptr;
    return reader != nullptr && form.shifted.count(reader->name) != 0;
  };
  for (Node node : trained.nodes()) {
    if (is_folded(node)) continue;
    if (form.folded.count(node.name) != 0) node.bias = true;
    if (node.op == Op::kBatchNorm) node.op = Op::kAffine;
    freeze_method(trained, node);
    if (const auto shift = shift_of.find(node.name); shift != shift_of.end()) take_in_shift(*shift->second, node);
    for (std::string& input : node.inputs) input = frozen_name(input);
    form.graph.add(std::move(node));
  }
  form.graph.set_output(frozen_name(trained.output()));
  return form;
}

}  // namespace onetap
