#include "onetap/train/engine_choice.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/train/adamw.h"
#include "onetap/train/parameter_rules.h"
#include "onetap/train/resolve.h"
#include "onetap/train/sgd.h"

#include <fmt/format.h>

namespace onetap {
namespace {

fused::EngineOptions engine_options(const Recipe& recipe, const Graph& graph, const DataSource& source,
                                    const Schedule& schedule, torch::Device device, RankGroup* ranks) {
  fused::EngineOptions options;
  options.ranks = ranks;
  options.device = device;
  options.type = resolved_precision(recipe, device) == Precision::kBf16 ? torch::kBFloat16 : torch::kFloat32;
  options.capture = recipe.cuda_graph;
  options.batch_size = recipe.batch_size;
  options.accumulate = recipe.accumulate;
  options.seed = recipe.seed;
  options.view = recipe_view(recipe, graph, source);
  options.augment = recipe_augment(recipe);
  options.workers = recipe.workers;
  options.objective = recipe_objective(recipe);
  options.update = {recipe.momentum, recipe.nesterov, recipe.weight_decay, recipe.logit_decay};
  const MixOptions mixing = recipe_mix(recipe);
  for (int64_t step = 0; step <= schedule.total_steps(); ++step) {
    options.learning_rates.push_back(static_cast<float>(schedule.learning_rate(step)));
    options.temperatures.push_back(static_cast<float>(schedule.temperature(step)));
    if (mixing.active()) options.mixes.push_back(draw_mix(mixing, options.view.size, recipe.seed, step));
  }
  return options;
}

// Why the run has no fused steps; empty: it has.
std::string fused_obstacle(const Recipe& recipe, const Graph& graph) {
  if (!trim(recipe.freeze_layers).empty()) return "some of its parameters are not trained (freeze_layers)";
  if (recipe.quantize != Quantize::kNone) return "it is trained for int8 (quantize)";
  return fused::engine_obstacle(graph);
}

}  // namespace

Precision resolved_precision(const Recipe& recipe, torch::Device device) {
  if (!device.is_cuda()) return Precision::kFp32;
  if (recipe.precision != Precision::kAuto) return recipe.precision;
  // bf16 has as few steps as a byte.
  return recipe.quantize == Quantize::kNone ? Precision::kBf16 : Precision::kTf32;
}

std::unique_ptr<Optimizer> make_optimizer(const Recipe& recipe, const nn::GraphModule& module) {
  const nn::ParameterRules rules = parameter_rules(module->graph(), recipe);
  if (recipe.optimizer == OptimizerChoice::kAdamW) {
    AdamWOptions options;
    options.beta1 = recipe.beta1;
    options.beta2 = recipe.beta2;
    options.weight_decay = recipe.weight_decay;
    return std::make_unique<AdamW>(*module, options, rules);
  }
  const SgdOptions options{recipe.momentum, recipe.nesterov, recipe.weight_decay};
  return std::make_unique<Sgd>(*module, options, rules);
}

std::unique_ptr<fused::Engine> choose_engine(const Recipe& recipe, const Graph& graph, const DataSource& source,
                                             const Schedule& schedule, const nn::GraphModule& module,
                                             const Optimizer& optimizer,
                                             const std::function<void(const std::string&)>& notice, RankGroup* ranks,
                                             const std::function<bool()>& stopped, const nn::GraphModule& teacher) {
  const torch::Device device = parse_device(recipe.device);
  set_gpu_arithmetic(resolved_precision(recipe, device) == Precision::kTf32, recipe.conv_trials);
  const bool for_gpus = recipe.precision == Precision::kBf16 || recipe.precision == Precision::kTf32;
  if (!device.is_cuda() && for_gpus && notice) {
    notice(fmt::format("this run has {}, which is for GPUs: on a CPU it is computed in fp32",
                       recipe.precision == Precision::kBf16 ? "bf16" : "tf32"));
  }
  if (recipe.engine == EngineChoice::kPlain) return nullptr;
  const bool chooses = recipe.engine == EngineChoice::kAuto;
  if (chooses && (!device.is_cuda() || fused::cuda_ops() == nullptr)) return nullptr;
  if (recipe.optimizer == OptimizerChoice::kAdamW) {
    const std::string why = "adamw needs plain steps";
    if (!chooses) fail_usage("[train] expected --engine plain or auto, got {}: {}", choice_word(recipe.engine), why);
    if (notice) notice("plain steps: " + why);
    return nullptr;
  }
  auto options = engine_options(recipe, graph, source, schedule, device, ranks);
  options.stopped = stopped;
  options.rules = optimizer.rules();
  options.teacher = teacher;
  const bool several = ranks != nullptr && ranks->size() > 1;
  const std::string synchronised = recipe.sync_norm && several ? "batch norm is synchronised (sync_norm)" : "";
  const auto make = [&](fused::Steps steps) {
    options.steps = steps;
    return std::make_unique<fused::Engine>(module, optimizer.state(), source, options);
  };
  const auto refuse = [&](const char* steps, const std::string& obstacle) {
    fail_usage("[train] {} steps are not available for this run: {}", steps, obstacle);
  };
  if (recipe.engine == EngineChoice::kCaptured) {
    if (!synchronised.empty()) refuse("captured", synchronised);
    return make(fused::Steps::kAutograd);
  }
  const std::string obstacle = synchronised.empty() ? fused_obstacle(recipe, graph) : synchronised;
  if (obstacle.empty()) return make(fused::Steps::kFused);
  if (!chooses) refuse("fused", obstacle);
  const bool captured = recipe.cuda_graph && synchronised.empty();
  if (notice) {
    notice(fmt::format("{} steps, because this run has no fused form: {}", captured ? "captured" : "plain", obstacle));
  }
  return captured ? make(fused::Steps::kAutograd) : nullptr;
}

AutocastScope::AutocastScope(const Recipe& recipe, torch::Device device)
    : guard_(device.is_cuda() && resolved_precision(recipe, device) == Precision::kBf16) {}

}  // namespace onetap
