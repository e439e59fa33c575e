#include "onetap/data/transform.h"
#include "onetap/fused/ops.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/nn/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace onetap::fused {
namespace {

using torch::indexing::Slice;

torch::Tensor like_activations(const torch::Tensor& values, const torch::Tensor& x) {
  return values.to(x.scalar_type()).contiguous(torch::MemoryFormat::ChannelsLast);
}

torch::Tensor padded(const torch::Tensor& values, int64_t channels) {
  return torch::constant_pad_nd(values, {0, channels - values.size(0)}, 0);
}

torch::Tensor masked_weight(const ConvState& conv, const torch::Tensor& weight, const torch::Tensor& attention,
                            double temperature) {
  if (!attention.defined()) return weight;
  const auto by_set =
      nn::trained_attention(attention.unsqueeze(0), torch::scalar_tensor(temperature, torch::kFloat64), conv.relax);
  return weight * nn::expand_sets(by_set, conv.layout).view(weight.sizes());
}

void sgd(torch::Tensor parameter, torch::Tensor velocity, const torch::Tensor& grad, double rate,
         const UpdateOptions& options, const nn::ParameterRule& rule = {}) {
  const auto update = grad.add(parameter, options.weight_decay * rule.decay);
  velocity.mul_(options.momentum).add_(update);
  parameter.add_(options.nesterov ? update.add(velocity, options.momentum) : velocity, -rate * rule.rate);
}

class ReferenceOps : public Ops {
 public:
  void pack_weights(at::ArrayRef<ConvState> convs, const StepValues& values) override {
    const torch::NoGradGuard no_grad;
    const double temperature = values.rates[1].item<double>();
    for (const ConvState& conv : convs) {
      conv.real_part(conv.packed).copy_(masked_weight(conv, conv.weight, conv.attention, temperature));
    }
  }

  void update_convs(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) override {
    const torch::AutoGradMode with_grad(true);  // also where backward() calls it
    const double rate = values.rates[0].item<double>(), temperature = values.rates[1].item<double>();
    for (const ConvState& conv : convs) {
      const auto grad = conv.real_part(conv.grad).to(torch::kFloat32);
      std::vector<torch::Tensor> inputs = {conv.weight.detach().requires_grad_()};
      if (conv.attention.defined()) inputs.push_back(conv.attention.detach().requires_grad_());
      const auto masked = masked_weight(conv, inputs[0], inputs.size() > 1 ? inputs[1] : torch::Tensor(), temperature);
      const auto grads =
          inputs.size() > 1 ? torch::autograd::grad({masked}, inputs, {grad}) : std::vector<torch::Tensor>{grad};
      const torch::NoGradGuard no_grad;
      sgd(conv.weight, conv.weight_momentum, grads[0], rate, options);
      if (conv.attention.defined()) sgd(conv.attention, conv.attention_momentum, grads[1], rate, options);
    }
  }

  void update_plain(std::vector<PlainState>& states, const StepValues& values, const UpdateOptions& options) override {
    const torch::NoGradGuard no_grad;
    const double rate = values.rates[0].item<double>();
    for (PlainState& state : states) {
      const auto grad = state.grad.flatten().narrow(0, 0, state.parameter.numel()).view_as(state.parameter);
      sgd(state.parameter, state.momentum, grad, rate, options, state.rule);
    }
  }

  torch::Tensor norm(NormState& state, const torch::Tensor& x, const torch::Tensor& residual, bool training) override {
    const torch::NoGradGuard no_grad;
    const int64_t channels = state.channels();
    const auto wide = x.to(torch::kFloat32);
    torch::Tensor mean = padded(state.running_mean, x.size(1));
    torch::Tensor variance = padded(state.running_var, x.size(1));
    if (training) {
      mean = wide.mean(at::IntArrayRef{0, 2, 3});
      variance = wide.var(at::IntArrayRef{0, 2, 3}, /*unbiased=*/false);
      const auto count = static_cast<double>(x.numel() / x.size(1));
      const double unbiased = count / std::max(1.0, count - 1);
      state.running_mean.lerp_(mean.narrow(0, 0, channels), kBatchNormMomentum);
      state.running_var.lerp_(variance.narrow(0, 0, channels) * unbiased, kBatchNormMomentum);
      state.batches.add_(1);
    }
    state.mean = mean;
    state.inverse_sd = (variance + kBatchNormEpsilon).rsqrt();
    state.scale = padded(state.gamma, x.size(1)) * state.inverse_sd;
    state.shift = padded(state.beta, x.size(1)) - state.mean * state.scale;
    auto y = wide * per_channel(state.scale) + per_channel(state.shift);
    if (residual.defined()) y = y + residual.to(torch::kFloat32);
    if (state.relu) y = y.relu();
    return like_activations(y, x);
  }

  NormGrads norm_backward(NormState& state, const std::vector<torch::Tensor>& dy, const torch::Tensor& x,
                          const torch::Tensor& y, bool has_residual) override {
    const torch::NoGradGuard no_grad;
    auto dz = dy[0].to(torch::kFloat32);
    for (size_t i = 1; i < dy.size(); ++i) dz = dz + dy[i].to(torch::kFloat32);
    if (state.relu) dz = at::threshold_backward(dz, y.to(torch::kFloat32), 0);
    const auto normal = (x.to(torch::kFloat32) - per_channel(state.mean)) * per_channel(state.inverse_sd);
    constexpr std::array<int64_t, 3> all = {0, 2, 3};
    state.beta_grad = dz.sum(all);
    state.gamma_grad = (dz * normal).sum(all);
    const auto count = static_cast<double>(x.numel() / x.size(1));
    const auto dx = per_channel(state.scale) *
                    (dz - per_channel(state.beta_grad) / count - normal * per_channel(state.gamma_grad) / count);
    return {like_activations(dx, x), has_residual ? like_activations(dz, x) : torch::Tensor()};
  }

  torch::Tensor global_pool(const torch::Tensor& x, int64_t channels) override {
    const torch::NoGradGuard no_grad;
    return x.to(torch::kFloat32).mean(at::IntArrayRef{2, 3}).narrow(1, 0, channels).contiguous();
  }

  torch::Tensor global_pool_backward(const torch::Tensor& dy, const torch::Tensor& x) override {
    const torch::NoGradGuard no_grad;
    const int64_t pixels = x.size(2) * x.size(3);
    const auto each = torch::constant_pad_nd(dy / static_cast<double>(pixels), {0, x.size(1) - dy.size(1)}, 0);
    return like_activations(each.view({x.size(0), x.size(1), 1, 1}).expand(x.sizes()), x);
  }

  torch::Tensor column_sums(const torch::Tensor& x) override { return x.sum(0); }

  torch::Tensor loss(LossState& state, const torch::Tensor& logits, const torch::Tensor& labels,
                     int64_t step_images) override {
    const torch::NoGradGuard no_grad;
    const auto log_p = torch::log_softmax(logits, 1);
    const double even = state.label_smoothing / static_cast<double>(logits.size(1));
    const auto target =
        torch::full_like(logits, even)
            .scatter_add_(1, labels.unsqueeze(1),
                          torch::full({labels.size(0), 1}, 1 - state.label_smoothing, logits.options()));
    state.sums[0] += -(target * log_p).sum().to(torch::kFloat64);
    state.sums[1] += logits.argmax(1).eq(labels).sum().to(torch::kFloat64);
    return (log_p.exp() - target) / static_cast<double>(step_images);
  }

  Sample sample(const AugmentState& state, const SampleRange& range, int64_t channels,
                torch::ScalarType type) override {
    const auto clock = state.clock.cpu();
    const auto epoch = static_cast<uint32_t>(clock[1].item<int64_t>());
    const auto picks =
        state.order.narrow(0, clock[0].item<int64_t>() * range.batch + range.first, range.count).to(torch::kInt64);
    const auto bytes = state.images.index_select(0, picks).to(torch::kFloat32);
    const int64_t height = bytes.size(2), width = bytes.size(3);
    auto images = torch::zeros({range.count, channels, height, width}, bytes.options());
    const auto indices = picks.cpu();
    for (int64_t n = 0; n < range.count; ++n) {
      auto image = bytes[n];
      Random random(state.seed, Purpose::kAugment, epoch, static_cast<uint32_t>(indices[n].item<int64_t>()));
      if (state.augment) {
        const auto places = static_cast<uint32_t>(2 * state.pad + 1);
        const auto top = static_cast<int64_t>(random.below(places)), left = static_cast<int64_t>(random.below(places));
        const bool flip = random.coin() && state.flip;
        image = torch::constant_pad_nd(image, {state.pad, state.pad, state.pad, state.pad}, 0)
                    .index({Slice(), Slice(top, top + height), Slice(left, left + width)});
        if (flip) image = image.flip({2});
      }
      for (int64_t c = 0; c < 3; ++c) {
        images[n][c].copy_(image[c] * state.multiply[static_cast<size_t>(c)] + state.add[static_cast<size_t>(c)]);
      }
      if (state.cutout > 0) clear(images[n], Cutout::draw(height, state.cutout, random));
    }
    return {images.to(type).contiguous(torch::MemoryFormat::ChannelsLast), state.labels.index_select(0, picks)};
  }

  void advance(const AugmentState& state, const torch::Tensor& counter, const torch::Tensor& tables,
               const StepValues& values) override {
    state.clock[0] += 1;
    counter.add_(1);
    values.rates.copy_(tables.select(1, counter.item<int64_t>()));
  }

 private:
  static void clear(torch::Tensor image, const Cutout& square) {
    const auto part = [&](int64_t dim, int64_t from) {
      const int64_t first = std::clamp<int64_t>(from, 0, image.size(dim));
      const int64_t last = std::clamp<int64_t>(from + square.side, 0, image.size(dim));
      return image.narrow(dim, first, last - first);
    };
    image = part(1, square.top);
    image = part(2, square.left);
    image.zero_();
  }
};

}  // namespace

std::unique_ptr<Ops> reference_ops() {
  return std::make_unique<ReferenceOps>();
}

}  // namespace onetap::fused
