#include "onetap/train/evaluate.h"

#include "onetap/train/score_sums.h"

namespace onetap {
std::optional<EvalResult> evaluate(nn::GraphModule& module, const Dataset& data, const EvalOptions& options) {
  const torch::NoGradGuard no_grad;
  const EvaluationScope scope(module);
  const bool has_sal = !module->sal_layers().empty();
  ScoreSums soft, hard;
  EvalResult result;
  BatchStream stream(data, options.stream);
  Batch batch;
  bool stopped = false;
  while (!stopped && stream.next(batch)) {
    const auto images = batch.images.to(options.device).contiguous(torch::MemoryFormat::ChannelsLast);
    const auto labels = batch.labels.to(options.device);
    soft.add(module->forward(images), labels);
    if (has_sal) {
      const nn::ModeGuard guard(module, options.hard_mode);
      hard.add(module->forward(images), labels);
    }
    result.images += labels.size(0);
    stopped = options.progress && !options.progress(result.images);
  }
  if (options.ranks != nullptr) {
    const auto sums =
        options.ranks->sum({soft.loss, static_cast<double>(soft.right), hard.loss, static_cast<double>(hard.right),
                            static_cast<double>(result.images), stopped ? 1.0 : 0.0});
    soft = {sums[0], static_cast<int64_t>(sums[1])};
    hard = {sums[2], static_cast<int64_t>(sums[3])};
    result.images = static_cast<int64_t>(sums[4]);
    stopped = sums[5] > 0;
  }
  if (stopped) return std::nullopt;
  result.soft = soft.score(result.images);
  result.hard = has_sal ? hard.score(result.images) : result.soft;
  return result;
}

std::optional<EvalResult> evaluate(nn::GraphModule& module, fused::Engine& engine, const EvalOptions& options) {
  const EvaluationScope scope(module);
  const auto score = [&]() -> std::optional<Score> {
    const auto sums = engine.test(options.progress);
    if (!sums) return std::nullopt;
    const auto images = static_cast<double>(sums->images);
    return Score{static_cast<double>(sums->right) / images, sums->loss / images};
  };
  EvalResult result;
  const auto soft = score();
  if (!soft) return std::nullopt;
  result.soft = result.hard = *soft;
  result.images = engine.test_images();
  if (module->sal_layers().empty()) return result;
  const nn::ModeGuard guard(module, options.hard_mode);
  const auto hard = score();
  if (!hard) return std::nullopt;
  result.hard = *hard;
  return result;
}

}  // namespace onetap
