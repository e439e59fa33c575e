#include "onetap/train/sensitivity.h"

#include "onetap/train/score_sums.h"

#include <algorithm>

namespace onetap {

std::optional<Sensitivity> measure_sensitivity(nn::GraphModule& module, const Dataset& test,
                                               const SensitivityOptions& options) {
  const torch::NoGradGuard no_grad;
  const EvaluationScope scope(module);
  const int64_t wanted = options.images > 0 ? std::min(options.images, test.size()) : test.size();
  const auto& sal_layers = module->sal_layers();
  ScoreSums soft, hard;
  std::vector<ScoreSums> alone(sal_layers.size());
  int64_t images = 0;
  BatchStream stream(test, options.stream);
  Batch batch;
  while (images < wanted && stream.next(batch)) {
    const int64_t count = std::min(batch.labels.size(0), wanted - images);
    const auto x = batch.images.narrow(0, 0, count).to(options.device).contiguous(torch::MemoryFormat::ChannelsLast);
    const auto labels = batch.labels.narrow(0, 0, count).to(options.device);
    soft.add(module->forward(x), labels);
    {
      const nn::ModeGuard guard(module, nn::AttentionMode::kHard);
      hard.add(module->forward(x), labels);
    }
    for (size_t i = 0; i < sal_layers.size(); ++i) {
      sal_layers[i].layer->set_mode(nn::AttentionMode::kHard);
      alone[i].add(module->forward(x), labels);
      sal_layers[i].layer->set_mode(nn::AttentionMode::kSoft);
    }
    images += count;
    if (options.progress && !options.progress(images)) return std::nullopt;
  }
  Sensitivity result;
  result.images = images;
  result.soft = soft.score(images);
  result.hard = hard.score(images);
  for (size_t i = 0; i < sal_layers.size(); ++i) {
    result.layers.push_back({sal_layers[i].name, alone[i].score(images)});
  }
  return result;
}

}  // namespace onetap
