// onetap eval on runs: soft and hard, by LibTorch.
#include "onetap/base/cpus.h"
#include "onetap/count/count.h"
#include "onetap/journal/run_files.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/resolve.h"
#include "tools/onetap/console.h"
#include "tools/onetap/eval.h"

#include <fmt/format.h>

namespace onetap::tool {
namespace {

std::string method_title(const Recipe& recipe, bool has_sal) {
  if (!has_sal) return "conv";
  return fmt::format("sal taps={} share={}", recipe.taps, recipe.share);
}

}  // namespace

std::vector<EvalRow> evaluate_run(const EvalArguments& options, const std::string& path, OpenedData& opened) {
  torch::set_num_threads(static_cast<int>(options.threads > 0 ? options.threads : available_cpus()));
  const RunFiles files(path);
  const Recipe recipe = files.read_config();
  const Graph graph = files.read_graph();
  const std::string spec = options.data.empty() ? recipe.data : absolute_data_spec(options.data);
  const DataSource& source = open_once(opened, spec);
  check_network(graph, source);

  const Checkpoint checkpoint = CheckpointFolder(files.checkpoints()).find(options.checkpoint);
  const torch::Device device = parse_device(options.device);
  nn::GraphModule module(graph);
  CheckpointFolder::load(checkpoint, module);
  module->to(device);
  module->set_temperature(checkpoint.state.temperature);

  EvalOptions eval;
  eval.stream.view = recipe_view(graph, source);
  eval.stream.batch_size = options.batch_size > 0 ? options.batch_size : recipe.batch_size;
  eval.device = device;
  const std::string binarize = options.binarize.empty() ? recipe.binarize : options.binarize;
  eval.hard_mode = binarize == "round" ? nn::AttentionMode::kRound : nn::AttentionMode::kHard;
  eval.progress = [&](int64_t images) {
    console().progress(fmt::format("{}: testing {}/{}", path, images, source.test->size()));
    return true;
  };
  const EvalResult result = evaluate(module, *source.test, eval).value();
  console().clear_progress();

  const bool has_sal = !module->sal_layers().empty();
  EvalRow row{path,
              graph.name(),
              method_title(recipe, has_sal),
              "dense",
              checkpoint.state.step,
              result.soft.accuracy,
              result.soft.loss,
              count_network(graph, CountRules::kPlain).params};
  if (!has_sal) return {row};
  row.form = "soft";
  EvalRow hard = row;
  hard.form = binarize == "round" ? "round" : "hard";
  hard.accuracy = result.hard.accuracy;
  hard.loss = result.hard.loss;
  hard.params = count_network(graph, CountRules::kPaper).params;
  return {row, hard};
}

}  // namespace onetap::tool
