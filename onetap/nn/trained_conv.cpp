#include "onetap/nn/trained_conv.h"

#include "onetap/base/fail.h"
#include "onetap/nn/binary_weights.h"
#include "onetap/nn/convolve.h"
#include "onetap/nn/fixed_taps.h"
#include "onetap/nn/shift_attention_conv.h"

#include <cmath>
#include <map>

namespace onetap::nn {
namespace {

std::map<std::string, ConvFactory>& factories() {
  static std::map<std::string, ConvFactory> all = {{"sal", make_shift_attention_conv},
                                                   {"random-taps", make_fixed_taps},
                                                   {"magnitude", make_fixed_taps},
                                                   {"bc", make_binary_weights},
                                                   {"bwn", make_binary_weights}};
  return all;
}

}  // namespace

void TrainedConv::set_temperature(double temperature) {
  if (!(temperature > 0)) fail_usage("[nn] expected a temperature above 0, got {}", temperature);
  temperature_ = temperature;
}

torch::Tensor TrainedConv::effective_weight() const {
  return editor_ ? editor_(unedited_weight()) : unedited_weight();
}

torch::Tensor TrainedConv::unedited_weight() const {
  if (mode_ != AttentionMode::kSoft) return finished_weight(mode_);
  if (trains_hard_) return finished_weight(AttentionMode::kHard);
  if (given_.weight.defined()) return given_.weight;
  return soft_weight(given_.temperature.defined() ? given_.temperature
                                                  : torch::scalar_tensor(temperature_, torch::kFloat64));
}

TrainedConv2d::TrainedConv2d(const Node& node, int64_t in_channels) : node_(node) {
  const int64_t inputs = in_channels / node.groups;
  std::vector<int64_t> shape = {node.out, inputs};
  if (node.op != Op::kLinear) shape.insert(shape.end(), {node.kernel.h, node.kernel.w});
  weight = register_parameter("weight", torch::empty(shape));
  const torch::NoGradGuard no_grad;
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!node.bias) return;
  bias = register_parameter("bias", torch::empty({node.out}));
  const double limit = 1 / std::sqrt(static_cast<double>(inputs * node.kernel.area()));
  bias.uniform_(-limit, limit);
}

torch::Tensor TrainedConv2d::forward(const torch::Tensor& x) {
  const auto w = effective_weight();
  return node_.op == Op::kLinear ? torch::linear(x, w, bias) : convolve(x, w, bias, node_);
}

void TrainedConv2d::pretty_print(std::ostream& stream) const {
  stream << "onetap::nn::" << node_.method.name() << "(" << weight.size(1) * node_.groups << ", " << node_.out;
  if (node_.op != Op::kLinear) stream << ", kernel_size=[" << node_.kernel.h << ", " << node_.kernel.w << "]";
  stream << ")";
}

void add_conv_factory(const std::string& method, ConvFactory factory) {
  if (!factories().emplace(method, std::move(factory)).second) {
    fail_usage("[nn] two layers for method '{}'", method);
  }
}

std::shared_ptr<TrainedConv> make_trained_conv(const Node& node, int64_t in_channels) {
  const auto found = factories().find(node.method.name());
  if (found == factories().end()) {
    fail_usage("[nn] {}: method '{}' has no layer to train", node.name, node.method.name());
  }
  return found->second(node, in_channels);
}

}  // namespace onetap::nn
