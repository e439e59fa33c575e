#include "onetap/nn/active_shift.h"

#include "onetap/nn/channel_shift.h"

namespace onetap::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A shift of each channel: whole pixels down or to the left, and what is left of it.
struct Shifts {
  torch::Tensor rows, columns;  // int64 [C]
  torch::Tensor dy, dx;         // [1, C, 1, 1], in [0, 1)
};

Shifts split(const torch::Tensor& weight, Extent2 image) {
  const auto whole = weight.floor();
  const auto rest = weight - whole;
  // Nothing is read from farther away. What is not a number stays one in `rest`, and must be a place here.
  const auto pixels = [&](int64_t dim, int64_t extent) {
    const auto reach = static_cast<double>(extent + 2);
    return whole.select(1, dim).nan_to_num(0.0).clamp(-reach, reach).to(torch::kInt64);
  };
  return {pixels(0, image.h), pixels(1, image.w), per_channel(rest.select(1, 0)), per_channel(rest.select(1, 1))};
}

// The pixels that the results of an active shift lie between.
struct Window {
  Extent2 stride, out;

  Window(Extent2 image, Extent2 by) : stride(by), out{(image.h - 1) / by.h + 1, (image.w - 1) / by.w + 1} {}
  Extent2 size() const { return {(out.h - 1) * stride.h + 2, (out.w - 1) * stride.w + 2}; }
  // Of each result the pixel i down and j to the right.
  torch::Tensor pixels(const torch::Tensor& z, int64_t i, int64_t j) const {
    return z.slice(2, i, i + (out.h - 1) * stride.h + 1, stride.h)
        .slice(3, j, j + (out.w - 1) * stride.w + 1, stride.w);
  }
};

// How much of pixel (i, j) is in a result.
torch::Tensor share(const Shifts& shifts, int64_t i, int64_t j) {
  return (i == 0 ? 1 - shifts.dy : shifts.dy) * (j == 0 ? 1 - shifts.dx : shifts.dx);
}

// One integer shift to a window that is a pixel larger, then the sum of its four corners: a few elementwise passes on
// any device, without anything to wait for.
class ActiveShift : public torch::autograd::Function<ActiveShift> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               int64_t stride_h, int64_t stride_w) {
    const Extent2 image{x.size(2), x.size(3)};
    const Window window(image, {stride_h, stride_w});
    const Shifts shifts = split(weight, image);
    const auto z =
        move_channels(x, channel_index(shifts.rows, shifts.columns, image, window.size(), lies_channels_last(x)));
    context->save_for_backward({z, weight});
    context->saved_data["image"] = std::vector<int64_t>{image.h, image.w};
    context->saved_data["stride"] = std::vector<int64_t>{stride_h, stride_w};
    const auto exact = z.to(weight.scalar_type());
    auto y = window.pixels(exact, 0, 0) * share(shifts, 0, 0);
    y.addcmul_(window.pixels(exact, 0, 1), share(shifts, 0, 1));
    y.addcmul_(window.pixels(exact, 1, 0), share(shifts, 1, 0));
    y.addcmul_(window.pixels(exact, 1, 1), share(shifts, 1, 1));
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &z = saved[0], &weight = saved[1];
    const auto size = context->saved_data["image"].toIntVector(), by = context->saved_data["stride"].toIntVector();
    const Extent2 image{size[0], size[1]};
    const Window window(image, {by[0], by[1]});
    const Shifts shifts = split(weight, image);
    const auto dy = grads[0].to(weight.scalar_type());

    auto dz = torch::zeros_like(z, weight.scalar_type());
    for (const int64_t i : {0, 1}) {
      for (const int64_t j : {0, 1}) window.pixels(dz, i, j).addcmul_(dy, share(shifts, i, j));
    }
    const auto back = channel_index(-shifts.rows, -shifts.columns, window.size(), image, lies_channels_last(z));
    const auto dx = move_channels(dz.to(z.scalar_type()), back);

    const auto q = [&](int64_t i, int64_t j) { return window.pixels(z, i, j).to(weight.scalar_type()); };
    const auto q00 = q(0, 0), q01 = q(0, 1), q10 = q(1, 0), q11 = q(1, 1);
    const auto down = (q10 - q00) * (1 - shifts.dx) + (q11 - q01) * shifts.dx;
    const auto right = (q01 - q00) * (1 - shifts.dy) + (q11 - q10) * shifts.dy;
    const auto sum = [&](const torch::Tensor& slope) { return (dy * slope).sum(at::IntArrayRef{0, 2, 3}); };
    return {dx, torch::stack({sum(down), sum(right)}, 1), {}, {}};
  }
};

}  // namespace

torch::Tensor active_shift(const torch::Tensor& x, const torch::Tensor& weight, Extent2 stride) {
  return ActiveShift::apply(x, weight, stride.h, stride.w);
}

ActiveShift2dImpl::ActiveShift2dImpl(int64_t channels, Extent2 stride)
    : weight(register_parameter("weight", torch::empty({channels, 2}))), stride_(stride) {
  const torch::NoGradGuard no_grad;
  weight.uniform_(-1, 1);
}

void ActiveShift2dImpl::pretty_print(std::ostream& stream) const {
  stream << "onetap::nn::ActiveShift2d(" << weight.size(0) << ", stride=[" << stride_.h << ", " << stride_.w << "])";
}

}  // namespace onetap::nn
