#include "onetap/fused/network.h"

#include "onetap/base/fail.h"
#include "onetap/nn/convolve.h"

namespace onetap::fused {
namespace {

using Kind = Step::Kind;

// at:: wants one number per spatial dimension.
std::vector<int64_t> pair(const Extent2& extent) {
  return {extent.h, extent.w};
}

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
  const auto tensor = [&](const std::string& name) { return tensors.at(name).detach(); };
  const auto momentum = [&](const std::string& name) { return momenta.at(name); };
  for (const Step& step : plan_.steps) {
    const std::string& name = step.node->name;
    switch (step.kind) {
      case Kind::kConv:
        state_of_.push_back(convs_.size());
        add_conv(step, tensor, momentum);
        break;
      case Kind::kNorm: {
        state_of_.push_back(norms_.size());
        NormState norm;
        norm.gamma = tensor(name + ".weight");
        norm.beta = tensor(name + ".bias");
        norm.running_mean = tensor(name + ".running_mean");
        norm.running_var = tensor(name + ".running_var");
        norm.batches = tensor(name + ".num_batches_tracked");
        norm.relu = step.relu;
        plain_.push_back({norm.gamma, momentum(name + ".weight"), {}});
        plain_.push_back({norm.beta, momentum(name + ".bias"), {}});
        norms_.push_back(std::move(norm));
        break;
      }
      case Kind::kLinear:
        state_of_.push_back(plain_.size());
        plain_.push_back({tensor(name + ".weight"), momentum(name + ".weight"), {}});
        if (step.node->bias) plain_.push_back({tensor(name + ".bias"), momentum(name + ".bias"), {}});
        break;
      default:
        state_of_.push_back(0);
        break;
    }
  }
}

void Network::add_conv(const Step& step, const TensorByName& tensor, const TensorByName& momentum) {
  const Node& node = *step.node;
  ConvState conv;
  conv.weight = tensor(node.name + ".weight");
  conv.weight_momentum = momentum(node.name + ".weight");
  for (const auto& trained : module_->trained_layers()) {
    if (trained.name == node.name) conv.layer = trained.layer;
  }
  rules_.choose(conv, node, tensor, momentum);
  conv.packed = torch::zeros({pad(conv.outputs()), pad(conv.inputs()), node.kernel.h, node.kernel.w},
                             conv.weight.options().dtype(options_.type))
                    .contiguous(torch::MemoryFormat::ChannelsLast);
  convs_.push_back(std::move(conv));
}

void Network::pack_for_inference() {
  const torch::NoGradGuard no_grad;
  for (const ConvState& conv : convs_) {
    conv.real_part(conv.packed).copy_(conv.layer ? conv.layer->effective_weight() : conv.weight);
  }
}

torch::Tensor Network::run(const torch::Tensor& images, bool training) {
  const torch::NoGradGuard no_grad;
  values_.assign(static_cast<size_t>(plan_.values), {});
  extras_.assign(static_cast<size_t>(plan_.values), {});
  const auto value = [&](int index) -> torch::Tensor& { return values_[static_cast<size_t>(index)]; };
  value(0) = images;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    const torch::Tensor& x = value(step.input);
    torch::Tensor& y = value(step.output);
    switch (step.kind) {
      case Kind::kConv:
        y = nn::convolve(x, convs_[state_of_[i]].packed, {}, *step.node);
        break;
      case Kind::kNorm:
        y = ops_->norm(norms_[state_of_[i]], x, step.residual >= 0 ? value(step.residual) : torch::Tensor(), training);
        if (!training && step.last_reader) value(step.input).reset();
        break;
      case Kind::kMaxPool:
        std::tie(y, extras_[static_cast<size_t>(step.output)]) =
            at::max_pool2d_with_indices(x, pair(step.node->kernel), pair(step.node->stride), pair(step.node->padding));
        break;
      case Kind::kGlobalPool:
        y = ops_->global_pool(x, step.node->shape[0]);
        break;
      case Kind::kLinear: {
        const size_t first = state_of_[i];
        y = at::linear(x, plain_[first].parameter, step.node->bias ? plain_[first + 1].parameter : torch::Tensor());
        break;
      }
    }
  }
  const auto result = value(plan_.result);
  if (!training) values_.clear();
  return result;
}

void Network::backward(const torch::Tensor& dlogits, const BackwardOptions& options) {
  const torch::NoGradGuard no_grad;
  const auto keep = [&](torch::Tensor& grad, const torch::Tensor& more) { grad = options.add ? grad + more : more; };
  std::vector<std::vector<torch::Tensor>> grads(static_cast<size_t>(plan_.values));
  const auto parts = [&](int index) -> std::vector<torch::Tensor>& { return grads[static_cast<size_t>(index)]; };
  const auto total = [&](int index) {
    auto& list = parts(index);
    torch::Tensor sum = list.at(0);
    for (size_t i = 1; i < list.size(); ++i) sum = sum + list[i];
    list.clear();
    return sum;
  };
  parts(plan_.result).push_back(dlogits);
  size_t next_plain = plain_.size();
  for (size_t i = plan_.steps.size(); i-- > 0;) {
    const Step& step = plan_.steps[i];
    const torch::Tensor x = values_[static_cast<size_t>(step.input)];
    switch (step.kind) {
      case Kind::kLinear: {
        const auto dy = total(step.output);
        const size_t first = state_of_[i];
        next_plain = first;
        keep(plain_[first].grad, dy.t().mm(x));
        if (step.node->bias) keep(plain_[first + 1].grad, ops_->column_sums(dy));
        parts(step.input).push_back(dy.mm(plain_[first].parameter));
        break;
      }
      case Kind::kGlobalPool:
        parts(step.input).push_back(ops_->global_pool_backward(total(step.output), x));
        break;
      case Kind::kMaxPool:
        parts(step.input)
            .push_back(at::max_pool2d_with_indices_backward(total(step.output), x, pair(step.node->kernel),
                                                            pair(step.node->stride), pair(step.node->padding), {1, 1},
                                                            false, extras_[static_cast<size_t>(step.output)]));
        break;
      case Kind::kNorm: {
        NormState& norm = norms_[state_of_[i]];
        auto dy = std::move(parts(step.output));
        while (dy.size() > 2) {
          dy[dy.size() - 2] = dy[dy.size() - 2] + dy.back();
          dy.pop_back();
        }
        auto result = ops_->norm_backward(norm, dy, x, values_[static_cast<size_t>(step.output)], step.residual >= 0);
        if (step.residual >= 0) parts(step.residual).push_back(std::move(result.residual));
        parts(step.input).push_back(std::move(result.x));
        next_plain -= 2;
        keep(plain_[next_plain].grad, norm.gamma_grad);
        keep(plain_[next_plain + 1].grad, norm.beta_grad);
        break;
      }
      case Kind::kConv: {
        ConvState& conv = convs_[state_of_[i]];
        const auto dy = total(step.output);
        if (step.input != 0) {  // nobody asks for the image's gradient
          parts(step.input).push_back(convolution_gradient(Gradient::kInput, dy, x, conv.packed, *step.node));
        }
        // Nobody waits for the weights' before the update.
        side_stream_.run({dy, x}, [&] {
          const auto grad = convolution_gradient(Gradient::kWeight, dy, x, conv.packed, *step.node);
          keep(conv.grad, grad.contiguous(torch::MemoryFormat::ChannelsLast));
          if (options.done) options.done(state_of_[i]);
        });
        break;
      }
    }
    values_[static_cast<size_t>(step.output)].reset();
  }
  values_.clear();
  side_stream_.join();
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
    const torch::Tensor& weight = convs_[state_of_[i]].packed;
    all.push_back(lone_convolution(module_->graph(), *step.node, weight, weight.size(1), weight.size(0), images));
  }
  return all;
}

void Network::update(const StepValues& values, const UpdateOptions& options) {
  rules_.update(convs_, values, options);
  ops_->update_plain(plain_, values, options);
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
  ops_->update_plain(plain_, values, options);
}

}  // namespace onetap::fused
