// onetap eval on runs: soft and hard, by LibTorch.
#include "onetap/base/file.h"
#include "onetap/count/count.h"
#include "onetap/data/score.h"
#include "onetap/graph/method.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/finite.h"
#include "tools/onetap/class_table.h"
#include "tools/onetap/console.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/open_run.h"

#include <fmt/format.h>

namespace onetap::tool {
namespace {

// Into the row and, on the run's own test set, into the run.
void keep_classes(const EvalArguments& options, const OpenRun& run, const Predictions& said, EvalRow& row) {
  row.classes = class_scores(said, run.source->classes);
  row.classes->step = run.checkpoint.state.step;
  row.classes->form = row.form;
  if (options.data.empty()) write_file_atomic(RunFiles(row.path).classes(), row.classes->json());
}

}  // namespace

std::vector<EvalRow> evaluate_run(const EvalArguments& options, const std::string& path, OpenedData& opened) {
  RunArguments arguments;
  arguments.verb_name = "eval";
  arguments.run = path;
  arguments.checkpoint = options.checkpoint;
  arguments.data = options.data;
  arguments.device = options.device;
  arguments.threads = options.threads;
  arguments.no_ema = options.no_ema;
  OpenRun run = open_run(arguments, opened);

  EvalOptions eval;
  eval.stream = run.test_stream();
  if (options.batch_size > 0) eval.stream.batch_size = options.batch_size;
  eval.device = run.device;
  const Binarize binarize = options.binarize.value_or(run.recipe.binarize);
  eval.hard_mode = binarize == Binarize::kRound ? nn::AttentionMode::kRound : nn::AttentionMode::kHard;
  eval.progress = [&](int64_t images) {
    console().progress(fmt::format("{}: testing {}/{}", path, images, run.source->test->size()));
    return true;
  };
  Predictions said;
  if (options.per_class) {
    eval.collect = [&](const torch::Tensor& outputs, const torch::Tensor& labels) {
      const auto values = outputs.to(torch::kCPU, torch::kFloat32).contiguous();
      const auto answers = labels.to(torch::kCPU).contiguous();
      said.classes = values.size(1);
      said.outputs.insert(said.outputs.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
      said.labels.insert(said.labels.end(), answers.data_ptr<int64_t>(), answers.data_ptr<int64_t>() + answers.numel());
    };
  }
  const EvalResult result = [&] {
    try {
      return evaluate(run.module, *run.source->test, eval).value();
    } catch (const NotFinite& problem) {
      throw at_checkpoint(problem, run);
    }
  }();
  console().clear_progress();

  const bool has_soft = has_soft_form(run.graph);
  EvalRow row{path,
              run.graph.name(),
              method_of(run.graph),
              only_form(run.graph),
              run.checkpoint.state.step,
              result.soft.accuracy,
              result.soft.loss,
              count_network(run.graph, CountRules::kPlain).params,
              ""};
  if (!has_soft) {  // it is what it will be frozen to
    row.params = count_network(run.graph, CountRules::kPaper).params;
    if (options.per_class) keep_classes(options, run, said, row);
    return {row};
  }
  row.form = "soft";
  EvalRow hard = row;
  hard.form = choice_word(binarize);
  hard.accuracy = result.hard.accuracy;
  hard.loss = result.hard.loss;
  hard.params = count_network(run.graph, CountRules::kPaper).params;
  if (options.per_class) keep_classes(options, run, said, hard);
  return {row, hard};
}

}  // namespace onetap::tool
