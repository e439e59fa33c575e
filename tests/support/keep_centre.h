// A training method in one file, as an exercise: a row of the table and a layer, and nothing else knows of it.
//
// keep-centre: the outer positions of every kernel fade as the temperature falls, until the centre alone is left; every
// output has a trained gain.
#pragma once

#include "onetap/graph/method_table.h"
#include "onetap/nn/trained_conv.h"

namespace onetap::testing {

class KeepCentreConv : public nn::TrainedConv2d {
 public:
  KeepCentreConv(const Node& node, int64_t in_channels)
      : TrainedConv2d(node, in_channels), gain_(register_parameter("gain", torch::ones({node.out}))) {}

  torch::Tensor soft_weight(const torch::Tensor& temperature) const override {
    const auto rest = temperature / (1 + temperature) * node_.method.real("fade");
    return scaled() * (centre() + (1 - centre()) * rest);
  }
  torch::Tensor finished_weight(nn::AttentionMode) const override { return scaled() * centre(); }

  nn::FrozenConv freeze() const override {
    const int64_t middle = node_.kernel.h / 2 * node_.kernel.w + node_.kernel.w / 2;
    return {scaled().detach().flatten(2).narrow(2, middle, 1),
            torch::full({1, weight.size(1), 1}, middle, torch::kInt64), bias};
  }

 private:
  torch::Tensor scaled() const { return weight * gain_.view({-1, 1, 1, 1}); }
  torch::Tensor centre() const {
    const torch::NoGradGuard no_grad;
    auto mask = torch::zeros_like(weight);
    mask.select(2, node_.kernel.h / 2).select(2, node_.kernel.w / 2).fill_(1);
    return mask;
  }

  torch::Tensor gain_;
};

inline const MethodInfo& add_keep_centre() {
  MethodKey fade;
  fade.name = "fade";
  fade.help = "outer weights at an endless temperature, in parts of what is trained";
  fade.usual = 1.0;
  fade.low = 0;
  fade.high = 1;

  MethodInfo info;
  info.name = "keep-centre";
  info.help = "convolutions that keep their centre";
  info.keys = {fade};
  info.needs_positions = true;
  info.has_soft_form = true;
  info.frozen = Op::kTapConv;
  info.keep = [](const Method&, TapLayout& layout) {
    layout.taps = 1;
    layout.share_outputs = layout.outputs;
  };
  info.extra_parameters = [](const Graph&, const Node& node) { return node.out; };
  nn::add_conv_factory(info.name, [](const Node& node, int64_t in_channels) {
    return std::make_shared<KeepCentreConv>(node, in_channels);
  });
  return add_method(info);
}

// The row, which the first call adds.
inline const MethodInfo& keep_centre() {
  static const MethodInfo& info = add_keep_centre();
  return info;
}

}  // namespace onetap::testing
