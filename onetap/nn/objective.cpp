#include "onetap/nn/objective.h"

namespace onetap::nn {

Targets Targets::part(const Portion& portion) const {
  const auto some = [&](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, portion.first, portion.count) : all;
  };
  Targets targets(some(labels));
  targets.others = some(others);
  targets.share = share;
  targets.teacher = some(teacher);
  return targets;
}

torch::Tensor Targets::main_labels() const {
  return others.defined() ? torch::where(share >= 0.5, labels, others) : labels;
}

torch::Tensor objective_loss(const torch::Tensor& logits, const Targets& targets, const Objective& objective) {
  const auto cross_entropy = [&](const torch::Tensor& labels) {
    return torch::nn::functional::cross_entropy(
        logits, labels, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(objective.label_smoothing));
  };
  auto loss = cross_entropy(targets.labels);
  if (targets.others.defined()) {
    loss = targets.share * loss + (1 - targets.share) * cross_entropy(targets.others);
  }
  if (!targets.teacher.defined()) return loss;
  const double t = objective.teacher_temperature;
  const auto wanted = torch::log_softmax(targets.teacher / t, 1), given = torch::log_softmax(logits / t, 1);
  const auto distance = (wanted.exp() * (wanted - given)).sum(1).mean();
  return (1 - objective.teacher_weight) * loss + objective.teacher_weight * t * t * distance;
}

}  // namespace onetap::nn
