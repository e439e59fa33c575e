// The passes of a fused network: forward over its steps, and backward.
#include "onetap/fused/network.h"
#include "onetap/nn/convolve.h"

namespace onetap::fused {
namespace {

using Kind = Step::Kind;
using torch::indexing::None;
using torch::indexing::Slice;

// at:: wants one number per spatial dimension.
std::vector<int64_t> pair(const Extent2& extent) {
  return {extent.h, extent.w};
}

}  // namespace

torch::Tensor Network::run(const torch::Tensor& images, bool training) {
  const torch::NoGradGuard no_grad;
  values_.assign(static_cast<size_t>(plan_.values), {});
  extras_.assign(static_cast<size_t>(plan_.values), {});
  values_[0] = images;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    values_[static_cast<size_t>(step.output)] = result_of(i, training);
    if (training) continue;
    for (const int done : step.last_uses) values_[static_cast<size_t>(done)].reset();
  }
  const auto result = values_[static_cast<size_t>(plan_.result)];
  if (!training) values_.clear();
  return result;
}

torch::Tensor Network::result_of(size_t index, bool training) {
  const Step& step = plan_.steps[index];
  const Node& node = *step.node;
  const Place& place = places_[index];
  const torch::Tensor& x = values_[static_cast<size_t>(step.input)];
  const auto other = step.residual >= 0 ? values_[static_cast<size_t>(step.residual)] : torch::Tensor();
  switch (step.kind) {
    case Kind::kConv:
      return nn::convolve(x, convs_[place.state].packed, {}, node);
    case Kind::kDepthwise:
      return ops_->depthwise(x, plain_[place.plain].parameter, node);
    case Kind::kNorm:
      return ops_->norm(norms_[place.state], x, other, training);
    case Kind::kAdd:
      return x + other;
    case Kind::kRelu:
      return x.relu();
    case Kind::kShift:
      return ops_->shift(x, shifts_[place.state].there);
    case Kind::kActiveShift:
      return ops_->active_shift(x, plain_[place.plain].parameter, node.stride);
    case Kind::kSubsample:
      return subsampled(x, node);
    case Kind::kMaxPool: {
      const auto [y, places] = at::max_pool2d_with_indices(x, pair(node.kernel), pair(node.stride), pair(node.padding));
      extras_[static_cast<size_t>(step.output)] = places;
      return y;
    }
    case Kind::kGlobalPool:
      return ops_->global_pool(x, node.shape[0]);
    case Kind::kLinear:
      return at::linear(x, linear_weight(node, place),
                        node.bias ? plain_[linear_bias(node, place)].parameter : torch::Tensor());
  }
  return {};  // every kind returns
}

// The network's channels move to the middle of those of the result; padding stays behind them.
torch::Tensor Network::subsampled(const torch::Tensor& x, const Node& node) const {
  const int64_t channels = module_->graph().source(node).shape[0], front = (node.out - channels) / 2;
  const auto thin =
      x.narrow(1, 0, channels).index({Slice(), Slice(), Slice(0, None, node.stride.h), Slice(0, None, node.stride.w)});
  return in_rows(torch::constant_pad_nd(thin, {0, 0, 0, 0, front, pad(node.out) - front - channels}, 0));
}

torch::Tensor Network::subsampled_backward(const torch::Tensor& dy, const torch::Tensor& x, const Node& node) const {
  const int64_t channels = module_->graph().source(node).shape[0], front = (node.out - channels) / 2;
  auto dx = torch::zeros_like(x);
  dx.narrow(1, 0, channels)
      .index_put_({Slice(), Slice(), Slice(0, None, node.stride.h), Slice(0, None, node.stride.w)},
                  dy.narrow(1, front, channels));
  return dx;
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
  for (size_t i = plan_.steps.size(); i-- > 0;) {
    const Step& step = plan_.steps[i];
    const Node& node = *step.node;
    const Place& place = places_[i];
    const torch::Tensor x = values_[static_cast<size_t>(step.input)];
    const bool of_image = step.input == 0;  // nobody asks for its gradient
    const auto give = [&](torch::Tensor grad) {
      if (!of_image) parts(step.input).push_back(std::move(grad));
    };
    switch (step.kind) {
      case Kind::kLinear: {
        const auto dy = total(step.output);
        if (node.bias) keep(plain_[linear_bias(node, place)].grad, ops_->column_sums(dy));
        give(dy.mm(linear_weight(node, place)));
        if (node.method.is_dense()) {
          keep(plain_[place.plain].grad, dy.t().mm(x));
        } else {
          side_stream_.run({dy, x}, [&] {
            keep(convs_[place.state].grad, dy.t().mm(x));
            if (options.done) options.done(place.state);
          });
        }
        break;
      }
      case Kind::kGlobalPool:
        give(ops_->global_pool_backward(total(step.output), x));
        break;
      case Kind::kMaxPool:
        give(at::max_pool2d_with_indices_backward(total(step.output), x, pair(node.kernel), pair(node.stride),
                                                  pair(node.padding), {1, 1}, false,
                                                  extras_[static_cast<size_t>(step.output)]));
        break;
      case Kind::kAdd: {
        const auto dy = total(step.output);
        give(dy);
        if (step.residual != 0) parts(step.residual).push_back(dy);
        break;
      }
      case Kind::kRelu:
        give(at::threshold_backward(total(step.output), values_[static_cast<size_t>(step.output)], 0));
        break;
      case Kind::kShift:
        give(ops_->shift(total(step.output), shifts_[place.state].back));
        break;
      case Kind::kSubsample:
        give(subsampled_backward(total(step.output), x, node));
        break;
      case Kind::kActiveShift:
      case Kind::kDepthwise: {
        PlainState& weight = plain_[place.plain];
        const auto dy = total(step.output);
        auto result = step.kind == Kind::kDepthwise ? ops_->depthwise_backward(dy, x, weight.parameter, node)
                                                    : ops_->active_shift_backward(dy, x, weight.parameter, node.stride);
        keep(weight.grad, result.weight);
        give(std::move(result.x));
        break;
      }
      case Kind::kNorm: {
        NormState& norm = norms_[place.state];
        auto dy = std::move(parts(step.output));
        while (dy.size() > 2) {
          dy[dy.size() - 2] = dy[dy.size() - 2] + dy.back();
          dy.pop_back();
        }
        auto result = ops_->norm_backward(norm, dy, x, values_[static_cast<size_t>(step.output)], step.residual >= 0);
        if (step.residual > 0) parts(step.residual).push_back(std::move(result.residual));
        give(std::move(result.x));
        keep(plain_[place.plain].grad, norm.gamma_grad);
        keep(plain_[place.plain + 1].grad, norm.beta_grad);
        break;
      }
      case Kind::kConv: {
        ConvState& conv = convs_[place.state];
        const auto dy = total(step.output);
        if (!of_image) give(convolution_gradient(Gradient::kInput, dy, x, conv.packed, node));
        // Nobody waits for the weights' before the update.
        side_stream_.run({dy, x}, [&] {
          const auto grad = convolution_gradient(Gradient::kWeight, dy, x, conv.packed, node);
          keep(conv.grad, grad.contiguous(torch::MemoryFormat::ChannelsLast));
          if (options.done) options.done(place.state);
        });
        break;
      }
    }
    values_[static_cast<size_t>(step.output)].reset();
  }
  values_.clear();
  side_stream_.join();
}

}  // namespace onetap::fused
