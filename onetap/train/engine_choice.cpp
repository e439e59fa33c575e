#include "onetap/train/engine_choice.h"

#include "onetap/base/fail.h"
#include "onetap/train/resolve.h"

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
  options.view = recipe_view(graph, source);
  options.augment = recipe_augment(recipe);
  options.workers = recipe.workers;
  options.label_smoothing = recipe.label_smoothing;
  options.update = {recipe.momentum, recipe.nesterov, recipe.weight_decay};
  for (int64_t step = 0; step <= schedule.total_steps(); ++step) {
    options.learning_rates.push_back(static_cast<float>(schedule.learning_rate(step)));
    options.temperatures.push_back(static_cast<float>(schedule.temperature(step)));
  }
  return options;
}

}  // namespace

Precision resolved_precision(const Recipe& recipe, torch::Device device) {
  if (!device.is_cuda()) return recipe.precision == Precision::kTf32 ? Precision::kTf32 : Precision::kFp32;
  return recipe.precision == Precision::kAuto ? Precision::kBf16 : recipe.precision;
}

std::unique_ptr<fused::Engine> choose_engine(const Recipe& recipe, const Graph& graph, const DataSource& source,
                                             const Schedule& schedule, const nn::GraphModule& module, const Sgd& sgd,
                                             const std::function<void(const std::string&)>& notice, RankGroup* ranks,
                                             const std::function<bool()>& stopped) {
  const torch::Device device = parse_device(recipe.device);
  set_gpu_arithmetic(resolved_precision(recipe, device) == Precision::kTf32);
  if (!device.is_cuda() && recipe.precision == Precision::kBf16 && notice) {
    notice("this run says bf16, which is for GPUs: a CPU computes it in fp32");
  }
  const bool insists = recipe.engine == EngineChoice::kFused;
  if (recipe.engine == EngineChoice::kPlain || (!insists && (!device.is_cuda() || fused::cuda_ops() == nullptr)))
    return nullptr;
  auto options = engine_options(recipe, graph, source, schedule, device, ranks);
  options.stopped = stopped;
  std::string obstacle = fused::engine_obstacle(graph);
  if (recipe.sync_norm && ranks != nullptr && ranks->size() > 1) obstacle = "batch norm is synchronised (sync_norm)";
  if (!recipe.decay_norms) obstacle = "batch norms and biases have no weight decay (decay_norms)";
  if (obstacle.empty()) return std::make_unique<fused::Engine>(module, sgd.state(), source, options);
  if (insists) fail_usage("[train] no fused steps for this run: {}", obstacle);
  if (notice) notice("plain steps, for this run has no fused form: " + obstacle);
  return nullptr;
}

AutocastScope::AutocastScope(const Recipe& recipe, torch::Device device)
    : active_(device.is_cuda() && resolved_precision(recipe, device) == Precision::kBf16) {
  if (active_) begin_autocast(torch::kBFloat16);
}

AutocastScope::~AutocastScope() {
  if (active_) end_autocast();
}

}  // namespace onetap
