#include "onetap/train/sensitivity.h"

#include "onetap/batches/device_batches.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/train/score_sums.h"

namespace onetap {

std::optional<Sensitivity> measure_sensitivity(nn::GraphModule& module, const Dataset& test,
                                               const SensitivityOptions& options) {
  const torch::NoGradGuard no_grad;
  const nn::EvaluationScope scope(module);
  const auto layers = module->soft_layers();
  ScoreSums soft, hard;
  std::vector<ScoreSums> alone(layers.size());
  int64_t images = 0;
  DeviceBatches batches(test, options.stream, options.device);
  Batch batch;
  while (batches.next(batch)) {
    const auto& x = batch.images;
    const auto& labels = batch.labels;
    soft.add(module->forward(x), labels);
    {
      const nn::ModeGuard guard(module, nn::AttentionMode::kHard);
      hard.add(module->forward(x), labels);
    }
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].layer->set_mode(nn::AttentionMode::kHard);
      alone[i].add(module->forward(x), labels);
      layers[i].layer->set_mode(nn::AttentionMode::kSoft);
    }
    images += labels.size(0);
    if (options.progress && !options.progress(images)) return std::nullopt;
  }
  if (batches.stopped()) return std::nullopt;
  Sensitivity result;
  result.images = images;
  result.soft = soft.score(images, "soft");
  result.hard = hard.score(images, "hard");
  for (size_t i = 0; i < layers.size(); ++i) {
    result.layers.push_back({layers[i].name, alone[i].score(images, "partly hard")});
  }
  return result;
}

}  // namespace onetap
