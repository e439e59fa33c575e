#include "onetap/train/fake_quant.h"

#include "onetap/tap/weight_scale.h"

#include <limits>

namespace onetap {
namespace {

class StraightThrough : public torch::autograd::Function<StraightThrough> {
 public:
  using Context = torch::autograd::AutogradContext;

  static torch::Tensor forward(Context* context, const torch::Tensor& x, const torch::Tensor& scale, int64_t least,
                               int64_t most) {
    const auto steps = x / scale;
    context->save_for_backward({steps.ge(least).logical_and_(steps.le(most))});
    return (steps + 0.5).floor_().clamp_(least, most).mul_(scale);
  }

  static torch::autograd::variable_list backward(Context* context, const torch::autograd::variable_list& grads) {
    return {grads[0] * context->get_saved_variables()[0], {}, {}, {}};
  }
};

}  // namespace

torch::Tensor fake_quantize(const torch::Tensor& x, const torch::Tensor& scale, const ByteRange& range) {
  return StraightThrough::apply(x, scale.detach().to(x.scalar_type()), range.least, range.most);
}

torch::Tensor weight_scales(const torch::Tensor& weight) {
  const torch::NoGradGuard no_grad;
  constexpr double kLeast = std::numeric_limits<float>::min();
  const auto own = weight.detach().flatten(1).abs().amax(1).to(torch::kFloat64) / ByteRange().most;
  // The base of a layer is a float in its file, and not below what the largest weight needs.
  const auto largest = own.max(), nearest = largest.to(torch::kFloat32);
  const auto above = torch::nextafter(nearest, torch::full_like(nearest, std::numeric_limits<float>::infinity()));
  const auto base = torch::where(nearest < largest, above, nearest).to(torch::kFloat64).clamp_min(kLeast);
  const auto octaves = (base / own.clamp_min(kLeast)).log2();
  const auto steps = (octaves * WeightScale::kStepsPerOctave).floor().clamp(0, 255);
  return base * (steps / -WeightScale::kStepsPerOctave).exp2();
}

torch::Tensor fake_quantize_weight(const torch::Tensor& weight) {
  std::vector<int64_t> per_output(static_cast<size_t>(weight.dim()), 1);
  per_output[0] = -1;
  return fake_quantize(weight, weight_scales(weight).view(per_output), {});
}

}  // namespace onetap
