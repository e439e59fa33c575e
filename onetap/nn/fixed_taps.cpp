#include "onetap/nn/fixed_taps.h"

#include "onetap/base/fail.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/nn/attention.h"

namespace onetap::nn {
namespace {

// [.., S] scores to the positions of the best `taps`, ascending.
torch::Tensor best_positions(const torch::Tensor& scores, int64_t taps) {
  return std::get<0>(sorted_positions(scores).narrow(-1, 0, taps).sort(-1));
}

}  // namespace

torch::Tensor largest_positions(const torch::Tensor& weight, const TapLayout& layout) {
  return best_positions(sum_sets(weight.detach().flatten(2).abs(), layout), layout.taps);
}

FixedTapsConv::FixedTapsConv(const Node& node, int64_t in_channels)
    : TrainedConv2d(node, in_channels), layout_(tap_layout(node, in_channels)) {
  const torch::NoGradGuard no_grad;
  const auto chosen =
      by_magnitude() ? largest_positions(weight, layout_)
                     : best_positions(torch::rand({layout_.output_blocks(), layout_.input_blocks(), layout_.positions}),
                                      layout_.taps);
  positions = register_buffer("positions", chosen.contiguous());
}

bool FixedTapsConv::by_magnitude() const {
  return node_.method.info().needs_init;
}

torch::Tensor FixedTapsConv::codes() const {
  return positions.to(torch::kInt64);  // Module::to(kFloat64) makes floats of integer buffers, too
}

torch::Tensor FixedTapsConv::mask_of_sets() const {
  const torch::NoGradGuard no_grad;
  return torch::zeros({layout_.output_blocks(), layout_.input_blocks(), layout_.positions}, weight.options())
      .scatter_(-1, codes(), 1.0);
}

torch::Tensor FixedTapsConv::soft_weight(const torch::Tensor&) const {
  return finished_weight(AttentionMode::kHard);
}

torch::Tensor FixedTapsConv::finished_weight(AttentionMode) const {
  return weight * expand_sets(mask_of_sets(), layout_).view(weight.sizes());
}

FrozenConv FixedTapsConv::freeze() const {
  return {weight.detach().flatten(2).gather(2, expand_sets(codes(), layout_)), codes(), bias};
}

std::optional<TapChoice> FixedTapsConv::describe() const {
  return TapChoice{mask_of_sets(), codes()};
}

torch::Tensor FixedTapsConv::weights_imported(const ImportedWeights& imported) {
  const torch::NoGradGuard no_grad;
  if (by_magnitude() && imported.dense) {
    positions.copy_(largest_positions(weight, layout_));
  } else {
    check_positions();  // they may be those of the file
  }
  return {};
}

void FixedTapsConv::check_positions() const {
  const bool in_range = (positions >= 0).logical_and(positions < layout_.positions).all().item<bool>();
  const bool ascending = (positions.diff(1, -1) > 0).all().item<bool>();
  if (!in_range || !ascending) {
    fail_data("[init] expected positions in 0..{}, ascending within a slice, got others ('{}.positions')",
              layout_.positions - 1, node_.name);
  }
}

std::shared_ptr<TrainedConv> make_fixed_taps(const Node& node, int64_t in_channels) {
  return std::make_shared<FixedTapsConv>(node, in_channels);
}

}  // namespace onetap::nn
