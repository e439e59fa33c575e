#include "onetap/ranks/sync_norm.h"

#include <algorithm>
#include <array>

namespace onetap {
namespace {

constexpr std::array<int64_t, 3> kAllButChannels = {0, 2, 3};

// Of the images of all ranks; `variance` divides by their number.
struct Moments {
  torch::Tensor mean, variance;
  double count = 0;
};

// Ranks send sums of values and of squares: in 64 bits, where nothing is lost in their difference.
Moments all_moments(const torch::Tensor& x, RankGroup& group) {
  const int64_t channels = x.size(1);
  const auto count = static_cast<double>(x.numel() / channels);
  const auto mean = x.mean(kAllButChannels).to(torch::kFloat64);
  const auto variance = x.var(kAllButChannels, /*unbiased=*/false).to(torch::kFloat64);
  const auto sums =
      torch::cat({mean * count, (variance + mean.square()) * count, torch::full({1}, count, mean.options())});
  group.sum(sums);
  Moments all;
  all.count = sums[2 * channels].item<double>();
  const auto all_mean = sums.narrow(0, 0, channels) / all.count;
  const auto all_variance = (sums.narrow(0, channels, channels) / all.count - all_mean.square()).clamp_min(0);
  all.mean = all_mean.to(torch::kFloat32);
  all.variance = all_variance.to(torch::kFloat32);
  return all;
}

class SyncNorm : public torch::autograd::Function<SyncNorm> {
 public:
  using Context = torch::autograd::AutogradContext;

  static torch::Tensor forward(Context* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const Moments* moments, double epsilon, RankGroup* group) {
    const auto inverse_sd = (moments->variance + epsilon).rsqrt();
    context->save_for_backward({x, weight, moments->mean, inverse_sd});
    context->saved_data["count"] = moments->count;
    context->saved_data["group"] = reinterpret_cast<int64_t>(group);
    const auto scale = weight * inverse_sd;
    const auto y = x.to(torch::kFloat32) * per_channel(scale) + per_channel(bias - moments->mean * scale);
    return y.to(x.scalar_type());
  }

  static torch::autograd::variable_list backward(Context* context, const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_sd = saved[3];
    const double count = context->saved_data["count"].toDouble();
    auto* group = reinterpret_cast<RankGroup*>(context->saved_data["group"].toInt());
    const auto dy = grads[0].to(torch::kFloat32);
    const auto normal = (x.to(torch::kFloat32) - per_channel(mean)) * per_channel(inverse_sd);
    const auto bias_grad = dy.sum(kAllButChannels), weight_grad = (dy * normal).sum(kAllButChannels);
    const auto sums = torch::stack({bias_grad, weight_grad});
    group->sum(sums);
    const auto dx =
        per_channel(weight * inverse_sd) * (dy - per_channel(sums[0] / count) - normal * per_channel(sums[1] / count));
    return {dx.to(x.scalar_type()), weight_grad, bias_grad, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor sync_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, RankGroup& group) {
  Moments moments;
  {
    const torch::NoGradGuard no_grad;
    moments = all_moments(x.detach().to(torch::kFloat32), group);
    const double momentum = norm.options.momentum().value();
    const double unbiased = moments.count / std::max(1.0, moments.count - 1);
    norm.running_mean.lerp_(moments.mean, momentum);
    norm.running_var.lerp_(moments.variance * unbiased, momentum);
    norm.num_batches_tracked.add_(1);
  }
  return SyncNorm::apply(x, norm.weight, norm.bias, &moments, norm.options.eps(), &group);
}

void synchronise_norms(nn::GraphModule& module, RankGroup& group) {
  module->set_training_norm(
      [&group](torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x) { return sync_norm(norm, x, group); });
}

}  // namespace onetap
