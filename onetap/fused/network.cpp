#include "onetap/fused/network.h"

#include "onetap/base/fail.h"
#include "onetap/fused/parameters.h"
#include "onetap/nn/channel_shift.h"

namespace onetap::fused {
namespace {

using Kind = Step::Kind;

}  // namespace

int64_t padded_channels(int64_t channels) {
  const auto up = [&](int64_t multiple) { return (channels + multiple - 1) / multiple * multiple; };
  if (channels <= 8) return 8;
  // Multiples of 32 have the fastest kernels, unless that is much more to compute.
  if (up(32) * 5 <= channels * 6) return up(32);
  return up(16) * 5 <= channels * 6 ? up(16) : up(8);
}

Network::Network(nn::GraphModule module, const nn::NamedTensors& given_momenta, const NetworkOptions& options,
                 std::shared_ptr<Ops> ops)
    : module_(std::move(module)),
      options_(options),
      ops_(std::move(ops)),
      rules_(ops_),
      plan_(make_plan(module_->graph())) {
  if (!plan_.obstacle.empty()) fail_usage("[fused] this network has no fused form: {}", plan_.obstacle);
  const auto tensors = by_name(nn::state_of(*module_));
  const auto momenta = by_name(given_momenta);
  const auto rules = rules_by_name(module_, options_.rules);
  const auto tensor = [&](const std::string& name) { return tensors.at(name).detach(); };
  const auto momentum = [&](const std::string& name) { return momenta.at(name); };
  const auto add_plain = [&](const std::string& name) {
    plain_.push_back({tensor(name), momentum(name), {}, rules.at(name)});
  };
  for (const Step& step : plan_.steps) {
    const Node& node = *step.node;
    Place place{0, plain_.size()};
    switch (step.kind) {
      case Kind::kConv:
        place.state = convs_.size();
        if (!rules.at(node.name + ".weight").is_usual()) fail("[fused] {}: expected the usual rule", node.name);
        convs_.push_back(rules_.make_conv(module_, node, tensor, momentum,
                                          {options_.type, options_.pad_channels ? padded_channels : nullptr}));
        break;
      case Kind::kNorm:
        place.state = norms_.size();
        add_norm(step, tensor);
        add_plain(node.name + ".weight");
        add_plain(node.name + ".bias");
        break;
      case Kind::kShift:
        place.state = shifts_.size();
        add_shift(node, tensors.begin()->second.device());
        break;
      case Kind::kActiveShift:
      case Kind::kDepthwise:
        add_plain(node.name + ".weight");
        break;
      case Kind::kLinear:
        if (node.method.is_dense()) {
          add_plain(node.name + ".weight");
        } else {
          place.state = convs_.size();
          add_linear(node, tensor, momentum);
        }
        if (node.bias) add_plain(node.name + ".bias");
        break;
      // Without parameters or state of their own.
      case Kind::kAdd:
      case Kind::kRelu:
      case Kind::kSubsample:
      case Kind::kMaxPool:
      case Kind::kGlobalPool:
        break;
    }
    places_.push_back(place);
  }
}

// Nothing of a linear layer is padded, and it is computed in 32 bits.
void Network::add_linear(const Node& node, const TensorByName& tensor, const TensorByName& momentum) {
  ConvState linear = rules_.make(module_, node, tensor, momentum);
  linear.packed = torch::zeros_like(linear.weight);
  convs_.push_back(std::move(linear));
}

torch::Tensor Network::linear_weight(const Node& node, const Place& place) const {
  return node.method.is_dense() ? plain_[place.plain].parameter : convs_[place.state].packed;
}

size_t Network::linear_bias(const Node& node, const Place& place) {
  return place.plain + (node.method.is_dense() ? 1 : 0);
}

void Network::add_norm(const Step& step, const TensorByName& tensor) {
  const std::string& name = step.node->name;
  NormState norm;
  norm.gamma = tensor(name + ".weight");
  norm.beta = tensor(name + ".bias");
  norm.running_mean = tensor(name + ".running_mean");
  norm.running_var = tensor(name + ".running_var");
  norm.batches = tensor(name + ".num_batches_tracked");
  norm.relu = step.relu;
  norms_.push_back(std::move(norm));
}

// Channels beyond the network's stay where they are.
void Network::add_shift(const Node& node, torch::Device device) {
  const nn::Moves moves = nn::shift_moves(node);
  const int64_t channels = node.shape[0];
  const auto there = torch::constant_pad_nd(torch::stack({moves.rows, moves.columns}), {0, pad(channels) - channels})
                         .to(torch::kInt32)
                         .to(device);
  shifts_.push_back({there, there.neg()});
}

void Network::pack_for_inference() {
  const torch::NoGradGuard no_grad;
  for (const ConvState& conv : convs_) {
    conv.real_part(conv.packed).copy_(conv.layer ? conv.layer->effective_weight() : conv.weight);
  }
}

std::vector<int64_t> Network::gradient_sizes() const {
  std::vector<int64_t> sizes;
  for (size_t i = convs_.size(); i-- > 0;) sizes.push_back(convs_[i].packed.numel());
  for (const PlainState& state : plain_) sizes.push_back(state.parameter.numel());
  return sizes;
}

void Network::backward_over_ranks(const torch::Tensor& dlogits, bool add, GradientSum& sum) {
  const size_t convs = convs_.size();
  backward(dlogits, {add, [&](size_t conv) { sum.add(convs - 1 - conv, convs_[conv].grad); }});
  // A gradient may be longer than its parameter, by padding.
  const auto real = [](const PlainState& state) { return state.grad.flatten().narrow(0, 0, state.parameter.numel()); };
  for (size_t i = 0; i < plain_.size(); ++i) sum.add(convs + i, real(plain_[i]));
  sum.finish();
  for (size_t i = 0; i < convs; ++i) convs_[i].grad.copy_(sum.sum(convs - 1 - i).view(convs_[i].grad.sizes()));
  for (size_t i = 0; i < plain_.size(); ++i) plain_[i].grad = sum.sum(convs + i).view_as(plain_[i].parameter);
}

std::vector<LoneConvolution> Network::lone_convolutions(int64_t images) const {
  std::vector<LoneConvolution> all;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (step.kind != Kind::kConv) continue;
    const torch::Tensor& weight = convs_[places_[i].state].packed;
    all.push_back(lone_convolution(module_->graph(), *step.node, weight, weight.size(1), weight.size(0), images));
  }
  return all;
}

void Network::update(const StepValues& values, const UpdateOptions& options) {
  rules_.update(convs_, values, options);
  update_parameters(*ops_, plain_, values, options);
}

void Network::backward_and_update(const torch::Tensor& dlogits, bool add, const StepValues& values,
                                  const UpdateOptions& options) {
  size_t updated = convs_.size();  // from here on
  int64_t waiting = 0;
  backward(dlogits, {add, [&](size_t conv) {
                       waiting += convs_[conv].weight.numel();
                       if (conv > 0 && waiting < options_.worth_a_launch) return;
                       rules_.update(at::ArrayRef<ConvState>(convs_).slice(conv, updated - conv), values, options);
                       updated = conv;
                       waiting = 0;
                     }});
  update_parameters(*ops_, plain_, values, options);
}

}  // namespace onetap::fused
