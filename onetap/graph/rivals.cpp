#include "onetap/graph/rivals.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/graph/sal.h"

namespace onetap {
namespace {

// Positions that do not change while the network is trained; their keys are those of SAL.
MethodInfo fixed_taps_row(const char* name, const char* help) {
  const MethodInfo sal = sal_row();
  MethodInfo info;
  info.name = name;
  info.help = help;
  for (const MethodKey& key : sal.keys) {
    if (key.name == "taps" || key.name == "share") info.keys.push_back(key);
  }
  info.needs_positions = true;
  info.frozen = Op::kTapConv;
  info.keep = sal.keep;
  return info;
}

// "layer1.0.conv1" to "layer1.0.shift1"; a name without "conv" gets "_shift".
std::string shift_name(const std::string& conv) {
  const size_t dot = conv.rfind('.');
  const size_t last = dot == std::string::npos ? 0 : dot + 1;
  const size_t at = conv.find("conv", last);
  return at == std::string::npos ? conv + "_shift" : conv.substr(0, at) + "shift" + conv.substr(at + 4);
}

void check_same_padding(const Node& conv) {
  const bool same = conv.padding.h == conv.dilation.h * (conv.kernel.h / 2) &&
                    conv.padding.w == conv.dilation.w * (conv.kernel.w / 2);
  if (conv.groups != 1 || !same || conv.kernel.h % 2 == 0 || conv.kernel.w % 2 == 0) {
    fail_usage("[graph] {}: a shift replaces convolutions with odd kernels, same padding and one group", conv.name);
  }
}

// `shift` before the conv, which keeps its name and its channels.
void add_shift_and_pointwise(Node shift, Node conv, Graph& network) {
  shift.name = shift_name(conv.name);
  shift.inputs = conv.inputs;
  conv.inputs = {network.add(std::move(shift))};
  conv.kernel = conv.dilation = {1, 1};
  conv.padding = {0, 0};
  network.add(std::move(conv));
}

MethodInfo binary_weights_row(const char* name, const char* help) {
  MethodInfo info;
  info.name = name;
  info.help = help;
  info.may_be_linear = true;
  info.layers = MethodInfo::Layers::kAll;
  info.frozen_method = "binary";
  info.weight_bits = 1;
  return info;
}

}  // namespace

MethodInfo random_taps_row() {
  return fixed_taps_row("random-taps", "taps at random positions");
}

MethodInfo magnitude_row() {
  MethodInfo info = fixed_taps_row("magnitude", "the largest taps of a trained network");
  info.needs_init = true;
  return info;
}

MethodInfo fixed_shift_row() {
  MethodInfo info;
  info.name = "shift";
  info.help = "fixed shifts";
  info.needs_positions = true;
  info.rewrite = [](const Method&, const Node& conv, Graph& network) {
    check_same_padding(conv);
    Node shift = default_node(Op::kShift);
    shift.kernel = conv.kernel;
    shift.dilation = conv.dilation;
    add_shift_and_pointwise(std::move(shift), conv, network);
  };
  return info;
}

MethodInfo active_shift_row() {
  MethodInfo info;
  info.name = "active-shift";
  info.help = "active shifts";
  info.needs_positions = true;
  info.rewrite = [](const Method&, const Node& conv, Graph& network) {
    check_same_padding(conv);
    Node shift = default_node(Op::kActiveShift);
    shift.stride = conv.stride;
    Node pointwise = conv;
    pointwise.stride = {1, 1};
    add_shift_and_pointwise(std::move(shift), std::move(pointwise), network);
  };
  return info;
}

MethodInfo bc_row() {
  return binary_weights_row("bc", "BinaryConnect");
}

MethodInfo bwn_row() {
  MethodKey scale;
  scale.name = "scale";
  scale.recipe_key = "bwn_scale";
  scale.help = "scale of binary weights: the mean magnitude per layer or per filter";
  scale.usual = "layer";
  scale.words = {"layer", "filter"};
  MethodInfo info = binary_weights_row("bwn", "binary weight networks");
  info.keys = {scale};
  return info;
}

}  // namespace onetap
