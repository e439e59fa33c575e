#include "onetap/nn/shift_attention_conv.h"

#include "onetap/base/fail.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/nn/attention.h"
#include "onetap/nn/empty_slices.h"

#include <cmath>

namespace onetap::nn {
namespace {

template <size_t D>
int64_t positions(const ShiftAttentionConvOptions<D>& options) {
  int64_t product = 1;
  for (const int64_t extent : *options.kernel_size()) product *= extent;
  return product;
}

template <size_t D>
void check(const ShiftAttentionConvOptions<D>& options) {
  const auto expect = [](bool holds, const char* what, int64_t got) {
    if (!holds) fail_usage("[shift_attention_conv] expected {}, got {}", what, got);
  };
  for (size_t i = 0; i < D; ++i) {
    expect(options.kernel_size()->at(i) >= 1, "a kernel of at least 1", options.kernel_size()->at(i));
    expect(options.stride()->at(i) >= 1, "a stride of at least 1", options.stride()->at(i));
    expect(options.dilation()->at(i) >= 1, "a dilation of at least 1", options.dilation()->at(i));
    if (options.padding()) {
      expect((*options.padding())->at(i) >= 0, "a padding of at least 0", (*options.padding())->at(i));
    }
  }
  const int64_t s = positions(options);
  expect(options.in_channels() >= 1, "at least 1 input channel", options.in_channels());
  expect(options.out_channels() >= 1, "at least 1 output channel", options.out_channels());
  expect(s >= 2, "a kernel with more than one position", s);
  if (options.taps() < 1 || options.taps() > s) {
    fail_usage("[shift_attention_conv] expected taps in 1..{} (kernel positions), got {}", s, options.taps());
  }
  if (options.share() < 1 || options.share() > options.out_channels()) {
    fail_usage("[shift_attention_conv] expected share in 1..{} (output channels), got {}", options.out_channels(),
               options.share());
  }
  if (!(options.density() > 0 && options.density() <= 1)) {
    fail_usage("[shift_attention_conv] expected a density above 0 and at most 1, got {}", options.density());
  }
  if (options.groups() < 1 || options.in_channels() % options.groups() != 0 ||
      options.out_channels() % options.groups() != 0) {
    fail_usage("[shift_attention_conv] expected groups to divide {} inputs and {} outputs, got {}",
               options.in_channels(), options.out_channels(), options.groups());
  }
  const int64_t inputs = options.in_channels() / options.groups();
  if (options.share_inputs() < 1 || options.share_inputs() > inputs) {
    fail_usage("[shift_attention_conv] expected share_inputs in 1..{} (input channels per group), got {}", inputs,
               options.share_inputs());
  }
}

template <size_t D>
torch::ExpandingArray<D> same_padding(const ShiftAttentionConvOptions<D>& options) {
  torch::ExpandingArray<D> padding(0);
  for (size_t i = 0; i < D; ++i) padding->at(i) = options.dilation()->at(i) * (options.kernel_size()->at(i) / 2);
  return padding;
}

torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& w, const ShiftAttentionConvOptions<1>& o) {
  return torch::conv1d(x, w, {}, o.stride(), *o.padding(), o.dilation(), o.groups());
}
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& w, const ShiftAttentionConvOptions<2>& o) {
  return torch::conv2d(x, laid_out_for(x, w), {}, o.stride(), *o.padding(), o.dilation(), o.groups());
}
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& w, const ShiftAttentionConvOptions<3>& o) {
  return torch::conv3d(x, w, {}, o.stride(), *o.padding(), o.dilation(), o.groups());
}

}  // namespace

torch::Tensor ShiftAttentionConvBase::logits() const {
  return taps() == 1 ? attention.unsqueeze(0) : attention;
}

torch::Tensor ShiftAttentionConvBase::spread(const torch::Tensor& by_set) const {
  return expand_sets(by_set, layout_).view(weight.sizes());
}

torch::Tensor ShiftAttentionConvBase::soft_sets(const torch::Tensor& temperature) const {
  const auto p = soft_attention(logits(), temperature);
  if (!keep.defined()) return p;
  return p * keep_gate(keep, kept_sets(layout_, density_), temperature).unsqueeze(-1);
}

torch::Tensor ShiftAttentionConvBase::trained_sets(const torch::Tensor& temperature) const {
  if (!keep.defined()) return trained_attention(logits(), temperature, relax_);
  const auto soft = soft_sets(temperature);
  // As trained_attention() does, of attention and gate together.
  return relax_ == Relax::kSoftmax ? soft : hard_sets() + (soft - soft.detach());
}

torch::Tensor ShiftAttentionConvBase::kept_mask() const {
  return keep_mask(keep, kept_sets(layout_, density_)).unsqueeze(-1);
}

torch::Tensor ShiftAttentionConvBase::hard_sets() const {
  return keep.defined() ? hard_mask(logits()) * kept_mask() : hard_mask(logits());
}

torch::Tensor ShiftAttentionConvBase::hard_codes() const {
  const auto positions = hard_positions(logits());
  return keep.defined() ? positions.masked_fill(kept_mask() == 0, layout_.none()) : positions;
}

torch::Tensor ShiftAttentionConvBase::finished_mask(AttentionMode mode) const {
  if (mode != AttentionMode::kRound) return spread(hard_sets());
  if (!keep.defined()) return spread(rounded_mask(logits(), temperature()));
  const torch::NoGradGuard no_grad;
  const auto p = soft_sets(torch::scalar_tensor(temperature(), torch::kFloat64));
  return spread((p > 0.5).to(weight.scalar_type()));
}

torch::Tensor ShiftAttentionConvBase::mask() const {
  if (mode() != AttentionMode::kSoft) return finished_mask(mode());
  return spread(trained_sets(torch::scalar_tensor(temperature(), torch::kFloat64)));
}

torch::Tensor ShiftAttentionConvBase::soft_weight(const torch::Tensor& temperature) const {
  return weight * spread(trained_sets(temperature));
}

torch::Tensor ShiftAttentionConvBase::finished_weight(AttentionMode mode) const {
  return weight * finished_mask(mode);
}

FrozenConv ShiftAttentionConvBase::freeze() const {
  auto kept = weight.detach().flatten(2).gather(2, expand_sets(hard_positions(logits()), layout_));
  if (keep.defined()) kept = kept * expand_sets(kept_mask(), layout_);
  return {kept, hard_codes(), {}};
}

std::optional<TapChoice> ShiftAttentionConvBase::describe() const {
  return TapChoice{soft_sets(torch::scalar_tensor(temperature(), torch::kFloat64)), hard_codes()};
}

torch::Tensor ShiftAttentionConvBase::weights_imported(const ImportedWeights& imported) {
  if (!imported.dense) return {};
  const torch::NoGradGuard no_grad;
  if (init_ == TapInit::kMagnitude) logits().copy_(magnitude_logits(weight, layout_));
  if (relax_ == Relax::kStraightThrough) return {};  // one tap is multiplied by 1, and the others are not there
  const auto p = soft_sets(torch::scalar_tensor(temperature(), torch::kFloat64));
  // A weight that P all but rules out at the start would become huge, and that P is soon another.
  constexpr double kLeastOfMean = 0.01;
  const auto mean = p.mean();
  const auto undone = 1 / spread(p.clamp_min(mean * kLeastOfMean));
  if (!imported.least_factor.defined()) {
    weight.mul_(undone);
    return {};
  }
  // Results as small as in any Shift Attention Layer. With larger weights the same steps would change less: the
  // gradient of what a batch norm follows falls as they grow, and 9 times larger ones would learn 81 times slower.
  const auto factor = torch::maximum(imported.least_factor, mean).clamp_max(1);
  std::vector<int64_t> per_output(static_cast<size_t>(weight.dim()), 1);
  per_output[0] = -1;
  weight.mul_(undone * factor.view(per_output));
  return factor;
}

torch::Tensor ShiftAttentionConvBase::as_dense(const torch::Tensor& effective) const {
  return relax_ == Relax::kStraightThrough ? weight : effective;
}

std::vector<std::string> ShiftAttentionConvBase::settle() {
  const torch::NoGradGuard no_grad;
  const auto kept = hard_positions(logits());
  for (int64_t tap = 0; tap < taps(); ++tap) {
    logits()[tap].zero_().scatter_(-1, kept.narrow(-1, tap, 1), 1.0);
  }
  if (!keep.defined()) return {"attention"};
  keep.copy_(kept_mask().squeeze(-1));
  return {"attention", "keep"};
}

void ShiftAttentionConvBase::make_parameters(int64_t out, int64_t in_per_group, at::IntArrayRef kernel) {
  std::vector<int64_t> shape = {out, in_per_group};
  int64_t s = 1;
  for (const int64_t extent : kernel) {
    shape.push_back(extent);
    s *= extent;
  }
  layout_.outputs = out;
  layout_.inputs = in_per_group;
  layout_.positions = s;
  std::vector<int64_t> logits = {layout_.output_blocks(), layout_.input_blocks(), s};
  if (taps() > 1) logits.insert(logits.begin(), taps());
  weight = register_parameter("weight", torch::empty(shape));
  attention = register_parameter("attention", torch::empty(logits));
  if (kept_sets(layout_, density_) < layout_.sets()) {
    keep = register_parameter("keep", torch::empty({layout_.output_blocks(), layout_.input_blocks()}));
  }
  draw_parameters();
}

void ShiftAttentionConvBase::draw_parameters() {
  const torch::NoGradGuard no_grad;
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  attention.uniform_(0.0, 1.0);
  if (init_ == TapInit::kCentre) {
    const int64_t s = attention.size(-1);
    attention.select(-1, s / 2).copy_(attention.amax(-1));
  }
  if (init_ == TapInit::kMagnitude) logits().copy_(magnitude_logits(weight, layout_));
  if (keep.defined()) keep.uniform_(0.0, 1.0);
}

template <size_t D>
ShiftAttentionConvImpl<D>::ShiftAttentionConvImpl(const ShiftAttentionConvOptions<D>& given) : options(given) {
  check(options);
  if (!options.padding()) options.padding(same_padding(options));
  layout_.taps = options.taps();
  layout_.share_outputs = options.share();
  layout_.share_inputs = options.share_inputs();
  relax_ = options.relax();
  density_ = options.density();
  init_ = options.init();
  make_parameters(options.out_channels(), options.in_channels() / options.groups(), options.kernel_size());
}

template <size_t D>
torch::Tensor ShiftAttentionConvImpl<D>::forward(const torch::Tensor& x) {
  return convolve(x, masked_weight(), options);
}

template <size_t D>
void ShiftAttentionConvImpl<D>::pretty_print(std::ostream& stream) const {
  stream << "onetap::nn::ShiftAttentionConv" << D << "d(" << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride() << ", taps=" << taps()
         << ", share=" << share_text({layout_.share_outputs, layout_.share_inputs}) << ")";
}

std::shared_ptr<TrainedConv> make_shift_attention_conv(const Node& node, int64_t in_channels) {
  const auto both = [](const Extent2& extent) { return torch::ExpandingArray<2>({extent.h, extent.w}); };
  ShiftAttentionConvOptions<2> options(in_channels, node.out, both(node.kernel));
  options.stride(both(node.stride)).padding(both(node.padding)).dilation(both(node.dilation)).groups(node.groups);
  const TapLayout layout = tap_layout(node, in_channels);
  options.taps(layout.taps).share(layout.share_outputs).share_inputs(layout.share_inputs);
  options.init(tap_init(node.method)).relax(tap_relax(node.method)).density(node.method.real("density"));
  return std::make_shared<ShiftAttentionConv2dImpl>(options);
}

template class ShiftAttentionConvImpl<1>;
template class ShiftAttentionConvImpl<2>;
template class ShiftAttentionConvImpl<3>;

}  // namespace onetap::nn
