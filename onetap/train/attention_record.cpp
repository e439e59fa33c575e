#include "onetap/train/attention_record.h"

#include "onetap/train/finite.h"

#include <algorithm>

namespace onetap {
namespace {

std::vector<double> to_doubles(const torch::Tensor& values) {
  const auto flat = values.to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// Counts per value 0..bins-1 of whole numbers.
std::vector<int64_t> counts(const torch::Tensor& indices, int64_t bins) {
  const auto each = torch::bincount(indices.flatten().to(torch::kCPU, torch::kInt64), {}, bins);
  return {each.data_ptr<int64_t>(), each.data_ptr<int64_t>() + bins};
}

// Share of the taps of `now` that are among those of the same slice in `then`.
double agreement(const torch::Tensor& now, const torch::Tensor& then) {
  const auto found = now.unsqueeze(-1).eq(then.unsqueeze(-2)).any(-1);
  return found.to(torch::kFloat64).mean().item<double>();
}

LayerAttention describe(const std::string& name, const Node& node, const torch::Tensor& p,
                        const torch::Tensor& positions) {
  LayerAttention line;
  line.name = name;
  line.kernel_h = node.kernel.h;
  line.kernel_w = node.kernel.w;
  // Finite logits may still be too large to be divided by a low temperature.
  if (!all_finite({{name, p}})) throw NotFinite("[train] the attention of '" + name + "' became nan or inf");
  line.mean_p = to_doubles(p.to(torch::kFloat64).mean(at::IntArrayRef{0, 1}));
  line.kept = counts(positions, line.positions());
  const auto bin = (p.amax(-1) * static_cast<double>(LayerAttention::kBins)).floor();
  const auto slices = static_cast<double>(bin.numel());
  for (const int64_t count :
       counts(bin.clamp_max(static_cast<double>(LayerAttention::kBins - 1)), LayerAttention::kBins)) {
    line.max_p.push_back(static_cast<double>(count) / slices);
  }
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
    const auto positions = choice->positions.to(torch::kCPU, torch::kInt16);
    line.layers.push_back(describe(name, module->graph().node(name), choice->p, positions));
    const std::string& wanted = name;
    const auto before =
        std::find_if(last_.begin(), last_.end(), [&](const auto& entry) { return entry.first == wanted; });
    if (before != last_.end() && before->second.sizes() == positions.sizes()) {
      line.layers.back().agreement = agreement(positions, before->second);
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
