#include "onetap/fused/autograd_network.h"

#include "onetap/fused/parameters.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>
#include <set>

namespace onetap::fused {
namespace {

bool is_attention(const std::string& parameter) {
  const std::string_view end = ".attention", name = parameter;
  return name.size() > end.size() && name.substr(name.size() - end.size()) == end;
}

// The state of an optimiser without what took no part: it stays as it is.
template <typename State>
std::vector<State> with_gradients(const std::vector<State>& all) {
  std::vector<State> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [](const State& s) { return s.grad.defined(); });
  return some;
}

}  // namespace

AutogradNetwork::AutogradNetwork(nn::GraphModule module, const nn::NamedTensors& given_momenta,
                                 const AutogradOptions& options, std::shared_ptr<Ops> ops)
    : module_(std::move(module)), options_(options), ops_(std::move(ops)), rules_(ops_) {
  const auto parameters = module_->named_parameters();
  const auto rule_of = rules_by_name(module_, options_.rules);
  const auto is_usual = [&](const std::string& name) {
    const auto found = rule_of.find(name);
    if (found == rule_of.end()) return true;
    nn::ParameterRule rule = found->second;
    if (is_attention(name) && rule.decay == options_.logit_decay) rule.decay = 1;
    return rule.is_usual();
  };
  const auto is_trained = [&](const std::string& name) {
    const torch::Tensor* parameter = parameters.find(name);
    return parameter == nullptr || parameter->requires_grad();
  };
  const auto momenta = by_name(given_momenta);
  const auto momentum = [&](const std::string& name) { return momenta.at(name); };
  std::vector<std::string> names;  // of convs_
  std::set<std::string> taken;     // parameters that are theirs
  const auto tensors = by_name(nn::state_of(*module_));
  const auto tensor = [&](const std::string& name) { return tensors.at(name).detach(); };
  for (const Node& node : module_->graph().nodes()) {
    // Kernels make weights that nothing else changes.
    if (node.op != Op::kConv || module_->edits_weights()) continue;
    const std::string weight = node.name + ".weight", attention = node.name + ".attention";
    if (!is_usual(weight) || !is_usual(attention)) continue;
    if (!is_trained(weight) || !is_trained(attention)) continue;
    if (!has_kernels(node, tap_layout(node, in_channels(module_->graph(), node)))) continue;
    convs_.push_back(rules_.make_conv(module_, node, tensor, momentum, {options_.type, nullptr}));
    names.push_back(node.name);
    taken.insert({weight, attention});
  }
  for (size_t i = 0; i < convs_.size(); ++i) {
    leaves_.push_back(convs_[i].packed.detach().requires_grad_());
    inputs_.weights[names[i]] = leaves_.back();
  }
  for (const auto& parameter : parameters) {
    if (taken.count(parameter.key()) > 0 || !parameter.value().requires_grad()) continue;
    plain_.push_back({parameter.value().detach(), momentum(parameter.key()), {}, rule_of.at(parameter.key())});
    leaves_.push_back(parameter.value());
  }
}

void AutogradNetwork::pack(const StepValues& values) {
  if (!convs_.empty()) rules_.pack(convs_, values);
  inputs_.temperature = values.temperature();
}

torch::Tensor AutogradNetwork::forward(const torch::Tensor& images) {
  const torch::AutoGradMode with_grad(true);
  const AutocastGuard autocast(options_.type == torch::kBFloat16);
  logits_ = module_->forward_with(images, inputs_).to(torch::kFloat32);
  return logits_.detach();
}

void AutogradNetwork::backward(const torch::Tensor& dlogits, bool add) {
  const auto grads = torch::autograd::grad({logits_}, leaves_, {dlogits}, /*retain_graph=*/{}, /*create_graph=*/false,
                                           /*allow_unused=*/true);
  logits_.reset();
  const torch::NoGradGuard no_grad;
  if (!add) forget_gradients();
  const auto keep = [&](torch::Tensor& grad, const torch::Tensor& more) {
    if (more.defined()) grad = add && grad.defined() ? grad + more : more;
  };
  for (size_t i = 0; i < convs_.size(); ++i) {
    keep(convs_[i].grad, grads[i].defined() ? grads[i].contiguous(torch::MemoryFormat::ChannelsLast) : grads[i]);
  }
  for (size_t i = 0; i < plain_.size(); ++i) keep(plain_[i].grad, grads[convs_.size() + i]);
}

void AutogradNetwork::update(const StepValues& values, const UpdateOptions& options) {
  const auto convs = with_gradients(convs_);
  if (!convs.empty()) rules_.update(convs, values, options);
  auto plain = with_gradients(plain_);
  update_parameters(*ops_, plain, values, options);
  forget_gradients();
  module_->after_step();
}

void AutogradNetwork::forget_gradients() {
  for (ConvState& conv : convs_) conv.grad.reset();
  for (PlainState& state : plain_) state.grad.reset();
}

std::vector<int64_t> AutogradNetwork::gradient_sizes() const {
  std::vector<int64_t> sizes;
  for (const torch::Tensor& leaf : leaves_) sizes.push_back(leaf.numel());
  return sizes;
}

void AutogradNetwork::backward_over_ranks(const torch::Tensor& dlogits, bool add, GradientSum& sum) {
  backward(dlogits, add);
  const auto grad = [&](size_t i) -> torch::Tensor& {
    return i < convs_.size() ? convs_[i].grad : plain_[i - convs_.size()].grad;
  };
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (grad(i).defined()) sum.add(i, grad(i));
  }
  sum.finish();
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (!grad(i).defined()) continue;
    grad(i) = sum.sum(i).view(leaves_[i].sizes()).to(leaves_[i].scalar_type());
    if (i < convs_.size()) grad(i) = grad(i).contiguous(torch::MemoryFormat::ChannelsLast);
  }
}

torch::Tensor AutogradNetwork::infer(const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const AutocastGuard autocast(options_.type == torch::kBFloat16);
  const bool training = module_->is_training();
  module_->eval();
  auto logits = module_->forward(images).to(torch::kFloat32);
  module_->train(training);
  return logits;
}

std::vector<LoneConvolution> AutogradNetwork::lone_convolutions(int64_t images) const {
  const Graph& graph = module_->graph();
  const auto tensors = by_name(nn::state_of(*module_));
  std::vector<LoneConvolution> all;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConv) continue;
    const auto weight =
        tensors.at(node.name + ".weight").detach().to(options_.type).contiguous(torch::MemoryFormat::ChannelsLast);
    all.push_back(lone_convolution(graph, node, weight, in_channels(graph, node), node.out, images));
  }
  return all;
}

}  // namespace onetap::fused
