#include "onetap/freeze/verify.h"

#include "onetap/base/error.h"
#include "onetap/base/fail.h"
#include "onetap/graph/method.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/runtime/session_pool.h"

namespace onetap {
namespace {

Predictions predict_by_module(nn::GraphModule& module, const Dataset& test, const VerifyOptions& options,
                              const std::string& stage) {
  const torch::NoGradGuard no_grad;
  Predictions predictions;
  BatchStream stream(test, options.stream);
  Batch batch;
  while (stream.next(batch)) {
    const auto outputs = module->forward(batch.images).to(torch::kFloat32).contiguous();
    predictions.classes = outputs.size(1);
    const auto* values = outputs.data_ptr<float>();
    predictions.outputs.insert(predictions.outputs.end(), values, values + outputs.numel());
    const auto* labels = batch.labels.data_ptr<int64_t>();
    predictions.labels.insert(predictions.labels.end(), labels, labels + batch.labels.numel());
    if (options.progress) options.progress(stage, predictions.images());
  }
  return predictions;
}

Predictions predict_by_runtime(const TapNet& net, const Dataset& test, const VerifyOptions& options,
                               const std::string& stage) {
  ScoreOptions score;
  score.view = options.stream.view;
  score.images = options.stream.images;
  score.threads = options.threads;
  if (options.progress) score.progress = [&](int64_t images) { options.progress(stage, images); };
  ModelOptions model;
  model.memory_limit = options.memory_limit;
  SessionPool sessions(std::make_shared<const Model>(net, model));
  return score_classifier(test, score, [&](const float* image) { return sessions.run(image); });
}

}  // namespace

void StageCheck::add(const char* name, Predictions predictions) {
  if (!predictions.is_finite()) {
    fail("[freeze] expected finite outputs of stage '{}', got nan or inf: the run had diverged", name);
  }
  Stage stage{name, std::move(predictions), {}};
  if (!stages_.empty()) stage.from_before = compare_outputs(stages_.back().predictions, stage.predictions);
  stages_.push_back(std::move(stage));
}

void StageCheck::trained(nn::GraphModule& module) {
  const nn::EvaluationScope scope(module);
  if (!has_soft_form(module->graph())) {
    const char* form = only_form(module->graph());
    add(form, predict_by_module(module, test_, options_, form));
  } else {
    add("soft", predict_by_module(module, test_, options_, "soft"));
    const nn::ModeGuard guard(module, nn::AttentionMode::kHard);
    add("hard", predict_by_module(module, test_, options_, "hard"));
  }
}

void StageCheck::hardened(const char* name, nn::GraphModule& module) {
  const nn::EvaluationScope scope(module);
  const nn::ModeGuard guard(module, nn::AttentionMode::kHard);
  add(name, predict_by_module(module, test_, options_, name));
}

void StageCheck::frozen(const char* name, const TapNet& net) {
  add(name, predict_by_runtime(net, test_, options_, name));
}

double rounding_tolerance(WeightType type) {
  // Sums of thousands of products in another order; weights of 11 bits.
  return type == WeightType::kF16 ? 2e-2 : 1e-4;
}

void check_stages(const std::vector<Stage>& stages, WeightType type, bool only_zeros) {
  for (const Stage& stage : stages) {
    const bool is_folded = stage.name == "folded";
    const bool must_agree = is_folded || stage.name == "file" || (stage.name == "dropped" && only_zeros);
    // The file holds what is in memory, bit for bit, and zeros add nothing; only folding may round.
    const double allowed = is_folded ? rounding_tolerance(type) : 0.0;
    if (must_agree && !(stage.from_before.relative() <= allowed)) {
      throw Error(ErrorKind::kCheck,
                  fmt::format("[freeze] expected outputs of stage '{}' within {:g} of the stage before, got {:g} "
                              "(largest difference {:g}, largest output {:g})",
                              stage.name, allowed, stage.from_before.relative(), stage.from_before.largest,
                              stage.from_before.scale));
    }
  }
}

}  // namespace onetap
