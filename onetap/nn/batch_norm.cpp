#include "onetap/nn/batch_norm.h"

#include "onetap/nn/channel_rows.h"

#include <algorithm>
#include <functional>

namespace onetap::nn {
namespace {

bool is_summed_badly(const torch::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32 && x.dim() == 4 && x.size(1) > 1 && x.numel() > 0 &&
         x.is_contiguous(torch::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

Rows rows_of(const torch::Tensor& x) {
  return {x.numel() / x.size(1), x.size(1)};
}

// As many parts as can be summed at a time: fixed, so that results do not depend on the number of threads.
constexpr int64_t kParts = 32;

// work(part, its rows, the index of its first value) for all parts of the rows.
void over_parts(const Rows& rows, const std::function<void(int64_t, const Rows&, int64_t)>& work) {
  at::parallel_for(0, kParts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = rows.count * part / kParts, last = rows.count * (part + 1) / kParts;
      work(part, {last - first, rows.channels}, first * rows.channels);
    }
  });
}

// [2, channels] doubles: two sums a channel. add(rows, at, first, second) adds those of a part.
torch::Tensor sums_over_rows(const Rows& rows, const std::function<void(const Rows&, int64_t, double*, double*)>& add) {
  const auto parts = torch::zeros({kParts, 2, rows.channels}, torch::kFloat64);
  double* sums = parts.data_ptr<double>();
  over_parts(rows, [&](int64_t part, const Rows& some, int64_t at) {
    double* first = sums + part * 2 * rows.channels;
    add(some, at, first, first + rows.channels);
  });
  return parts.sum(0);
}

const float* floats(const torch::Tensor& tensor) {
  return tensor.data_ptr<float>();
}

struct Moments {
  torch::Tensor mean, variance;  // 64 bits; the variance divides by the number of pixels
};

Moments moments_of(const torch::Tensor& x) {
  const Rows rows = rows_of(x);
  // Around the first pixel's values, so that a large mean does not swallow the variance.
  const auto around = x.permute({0, 2, 3, 1}).reshape({-1, rows.channels})[0].contiguous();
  const auto sums = sums_over_rows(rows, [&](const Rows& some, int64_t at, double* first, double* second) {
    add_moments(some, floats(x) + at, floats(around), first, second);
  });
  const auto off = sums[0] / rows.count;
  return {off + around.to(torch::kFloat64), (sums[1] / rows.count - off.square()).clamp_min(0)};
}

class ChannelsLastNorm : public torch::autograd::Function<ChannelsLastNorm> {
 public:
  using Context = torch::autograd::AutogradContext;

  // mean and inverse_sd of the batch, in 64 bits.
  static torch::Tensor forward(Context* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const torch::Tensor& mean, const torch::Tensor& inverse_sd) {
    context->save_for_backward({x, weight, mean, inverse_sd});
    const auto scale = weight * inverse_sd;
    const auto shift = (bias - mean * scale).to(torch::kFloat32), slope = scale.to(torch::kFloat32);
    auto y = torch::empty_like(x);
    over_parts(rows_of(x), [&](int64_t, const Rows& some, int64_t at) {
      scale_rows(some, floats(x) + at, floats(slope), floats(shift), y.data_ptr<float>() + at);
    });
    return y;
  }

  static torch::autograd::variable_list backward(Context* context, const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_sd = saved[3];
    const auto dy = grads[0].contiguous(torch::MemoryFormat::ChannelsLast);
    const auto around = mean.to(torch::kFloat32);
    const Rows rows = rows_of(x);
    const auto sums = sums_over_rows(rows, [&](const Rows& some, int64_t at, double* first, double* second) {
      add_products(some, floats(dy) + at, floats(x) + at, floats(around), first, second);
    });
    const auto bias_grad = sums[0], weight_grad = sums[1] * inverse_sd;
    // dx = scale * (dy - bias_grad / n - (x - mean) * inverse_sd * weight_grad / n)
    const auto scale = weight * inverse_sd, tilt = -scale * inverse_sd * weight_grad / rows.count;
    const auto shift = (-scale * bias_grad / rows.count - tilt * mean).to(torch::kFloat32);
    const auto slope = scale.to(torch::kFloat32), tilt32 = tilt.to(torch::kFloat32);
    auto dx = torch::empty_like(x);
    over_parts(rows, [&](int64_t, const Rows& some, int64_t at) {
      mix_rows(some, floats(dy) + at, floats(slope), floats(x) + at, floats(tilt32), floats(shift),
               dx.data_ptr<float>() + at);
    });
    return {dx, weight_grad.to(torch::kFloat32), bias_grad.to(torch::kFloat32), {}, {}};
  }
};

}  // namespace

torch::Tensor training_norm(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x) {
  if (!is_summed_badly(x)) return norm.forward(x);
  torch::Tensor mean, inverse_sd;
  {
    const torch::NoGradGuard no_grad;
    const Moments moments = moments_of(x.detach());
    norm.num_batches_tracked.add_(1);
    // Without a momentum, the mean over all batches so far.
    const double share =
        norm.options.momentum() ? *norm.options.momentum() : 1.0 / norm.num_batches_tracked.item<double>();
    const auto count = static_cast<double>(rows_of(x).count);
    norm.running_mean.lerp_(moments.mean.to(torch::kFloat32), share);
    norm.running_var.lerp_((moments.variance * (count / std::max(1.0, count - 1))).to(torch::kFloat32), share);
    mean = moments.mean;
    inverse_sd = (moments.variance + norm.options.eps()).rsqrt();
  }
  return ChannelsLastNorm::apply(x, norm.weight, norm.bias, mean, inverse_sd);
}

}  // namespace onetap::nn
