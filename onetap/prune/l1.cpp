#include "onetap/prune/l1.h"

#include "onetap/prune/channel_values.h"

namespace onetap {

std::vector<LayerScores> score_l1(const nn::GraphModule& module, const std::vector<std::string>& convs) {
  const torch::NoGradGuard no_grad;
  const auto parameters = module->named_parameters();
  std::vector<LayerScores> scores;
  for (const std::string& conv : convs) {
    const torch::Tensor weight = parameters[conv + ".weight"].to(torch::kFloat64);
    scores.push_back({conv, channel_values(weight.abs().flatten(1).sum(1))});
  }
  return scores;
}

}  // namespace onetap
