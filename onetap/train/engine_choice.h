// How the steps of a run are computed: by LibTorch's autograd op by op, or by the engine, which has fused steps and
// captured ones of autograd; and in which precision.
#pragma once

#include "onetap/fused/engine.h"
#include "onetap/recipe/schedule.h"
#include "onetap/train/optimizer.h"

#include <functional>
#include <memory>
#include <string>

namespace onetap {

// What computes the updates of a recipe.
std::unique_ptr<Optimizer> make_optimizer(const Recipe& recipe, const nn::GraphModule& module);

// Sets LibTorch's arithmetic as the recipe says. The engine, of one process or with its `ranks`, or null where the
// recipe asks for plain steps or where `auto` finds that the engine cannot do the run. `auto` says so where the run has
// no fused form. kUsage if the recipe insists on steps that the run has not. `stopped` is StreamOptions' of its data,
// `teacher` EngineOptions'.
std::unique_ptr<fused::Engine> choose_engine(const Recipe& recipe, const Graph& graph, const DataSource& source,
                                             const Schedule& schedule, const nn::GraphModule& module,
                                             const Optimizer& optimizer,
                                             const std::function<void(const std::string&)>& notice,
                                             RankGroup* ranks = nullptr, const std::function<bool()>& stopped = {},
                                             const nn::GraphModule& teacher = nullptr);

// "auto" made plain: what activations are computed in on this device.
Precision resolved_precision(const Recipe& recipe, torch::Device device);

// LibTorch's own ops in bfloat16 while it lives, for one forward pass, where the recipe says so.
class AutocastScope {
 public:
  AutocastScope(const Recipe& recipe, torch::Device device);

 private:
  AutocastGuard guard_;
};

}  // namespace onetap
