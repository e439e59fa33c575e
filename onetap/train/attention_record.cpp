#include "onetap/train/attention_record.h"

#include "onetap/graph/tap_layout.h"
#include "onetap/train/finite.h"

#include <algorithm>
#include <numeric>

namespace onetap {
namespace {

std::vector<double> to_doubles(const torch::Tensor& values) {
  const auto flat = values.to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// How many slices each set stands for, in the order of `p`'s rows.
torch::Tensor slices_of_sets(const TapLayout& layout) {
  auto slices = torch::empty({layout.sets()}, torch::kFloat64);
  for (int64_t set = 0; set < layout.sets(); ++set) {
    slices.data_ptr<double>()[set] = static_cast<double>(layout.slices_of(set));
  }
  return slices;
}

// Share of the taps of `now` that are among those of the same slice in `then`.
double agreement(const TapLayout& layout, const torch::Tensor& now, const torch::Tensor& then) {
  const auto found = now.unsqueeze(-1).eq(then.unsqueeze(-2)).any(-1).to(torch::kFloat64).mean(-1);
  return (found.flatten() * slices_of_sets(layout)).sum().item<double>() / static_cast<double>(layout.slices());
}

LayerAttention describe(const std::string& name, const Node& node, const TapLayout& layout, const torch::Tensor& given,
                        const torch::Tensor& positions) {
  if (!all_finite({{name, given}})) throw NotFinite("[train] the attention of '" + name + "' became nan or inf");
  const auto p = given.to(torch::kCPU, torch::kFloat64).reshape({layout.sets(), layout.positions});
  const auto share = slices_of_sets(layout) / static_cast<double>(layout.slices());
  LayerAttention line;
  line.name = name;
  line.kernel_h = node.kernel.h;
  line.kernel_w = node.kernel.w;
  line.mean_p = to_doubles(share.unsqueeze(0).mm(p));
  const auto codes = positions.to(torch::kInt16).contiguous();
  line.kept = count_slices(layout, {codes.data_ptr<int16_t>(), codes.data_ptr<int16_t>() + codes.numel()});
  line.none = 1 - static_cast<double>(std::accumulate(line.kept.begin(), line.kept.end(), int64_t{0})) /
                      static_cast<double>(layout.weights());
  const auto bin = (p.amax(-1) * static_cast<double>(LayerAttention::kBins)).floor();
  const auto last = static_cast<double>(LayerAttention::kBins - 1);
  line.max_p = to_doubles(torch::bincount(bin.clamp_max(last).to(torch::kInt64), share, LayerAttention::kBins));
  return line;
}

}  // namespace

AttentionLine AttentionRecord::take(const nn::GraphModule& module) {
  const torch::NoGradGuard no_grad;
  AttentionLine line;
  std::vector<std::pair<std::string, torch::Tensor>> taken;
  for (const auto& [name, layer] : module->trained_layers()) {
    const auto choice = layer->describe();
    if (!choice) continue;
    const Node& node = module->graph().node(name);
    const auto positions = choice->positions.to(torch::kCPU, torch::kInt16);
    const TapLayout layout = tap_layout(module->graph(), node);
    line.layers.push_back(describe(name, node, layout, choice->p, positions));
    const std::string& wanted = name;
    const auto before =
        std::find_if(last_.begin(), last_.end(), [&](const auto& entry) { return entry.first == wanted; });
    if (before != last_.end() && before->second.sizes() == positions.sizes()) {
      line.layers.back().agreement = agreement(layout, positions, before->second);
    }
    taken.emplace_back(name, positions);
  }
  last_ = std::move(taken);
  return line;
}

nn::NamedTensors AttentionRecord::state() const {
  return {last_.begin(), last_.end()};
}

void AttentionRecord::restore(const SafetensorsFile& file) {
  last_.clear();
  for (const TensorView& view : file.tensors()) {
    if (view.dtype != DType::kI16) continue;
    last_.emplace_back(view.name, nn::to_tensor(view));
  }
}

}  // namespace onetap
