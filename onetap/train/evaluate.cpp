#include "onetap/train/evaluate.h"

#include "onetap/batches/device_batches.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/train/score_sums.h"

namespace onetap {
namespace {

// Whether the hard network computes anything else than the one that is trained.
bool has_two_forms(const nn::GraphModule& module, nn::AttentionMode hard) {
  const Graph& graph = module->graph();
  return has_soft_form(graph) && !module->trains_hard() && !(hard == nn::AttentionMode::kHard && trains_hard(graph));
}

}  // namespace

std::optional<EvalResult> evaluate(nn::GraphModule& module, const Dataset& data, const EvalOptions& options) {
  const torch::NoGradGuard no_grad;
  const nn::EvaluationScope scope(module);
  const bool has_soft = has_two_forms(module, options.hard_mode);
  ScoreSums soft, hard;
  EvalResult result;
  DeviceBatches batches(data, options.stream, options.device);
  Batch batch;
  bool stopped = false;
  while (!stopped && batches.next(batch)) {
    torch::Tensor outputs = module->forward(batch.images);
    soft.add(outputs, batch.labels);
    if (has_soft) {
      const nn::ModeGuard guard(module, options.hard_mode);
      outputs = module->forward(batch.images);
      hard.add(outputs, batch.labels);
    }
    if (options.collect) options.collect(outputs, batch.labels);
    result.images += batch.labels.size(0);
    stopped = options.progress && !options.progress(result.images);
  }
  stopped = stopped || batches.stopped();
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
  result.soft = soft.score(result.images, has_soft ? "soft" : only_form(module->graph()));
  result.hard = has_soft ? hard.score(result.images, "hard") : result.soft;
  return result;
}

std::optional<EvalResult> evaluate(nn::GraphModule& module, fused::Engine& engine, const EvalOptions& options) {
  const nn::EvaluationScope scope(module);
  std::vector<nn::AttentionMode> modes = {nn::AttentionMode::kSoft};
  if (has_two_forms(module, options.hard_mode)) modes.push_back(options.hard_mode);
  const auto sums = engine.test(modes, options.progress);
  if (!sums) return std::nullopt;
  const auto score = [](const fused::Sums& of, const char* form) {
    check_test_loss(of.loss, form);
    const auto images = static_cast<double>(of.images);
    return Score{static_cast<double>(of.right) / images, of.loss / images};
  };
  const bool has_soft = modes.size() > 1;
  const Score soft = score(sums->front(), has_soft ? "soft" : only_form(module->graph()));
  return EvalResult{soft, has_soft ? score(sums->back(), "hard") : soft, engine.test_images()};
}

}  // namespace onetap
