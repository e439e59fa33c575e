// onetap eval: accuracy of runs, soft and hard.
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/resolve.h"
#include "onetap/train/run_directory.h"
#include "tools/onetap/console.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <memory>

namespace onetap::tool {
namespace {

struct EvalArguments {
  std::vector<std::string> runs;
  std::string data;
  std::string checkpoint = "last";
  std::string binarize;
  std::string device = "auto";
  int64_t threads = 0;
  int64_t batch_size = 0;
  bool json = false;
};

// One row: a network in one form.
struct EvalRow {
  std::string run, network, method, form;
  int64_t step = 0;
  Score score;
  double params = 0;
};

std::string method_title(const Recipe& recipe, bool has_sal) {
  if (!has_sal) return "conv";
  return fmt::format("sal taps={} share={}", recipe.taps, recipe.share);
}

std::vector<EvalRow> evaluate_run(const EvalArguments& options, const std::string& path,
                                  std::map<std::string, DataSource>& opened) {
  const RunFiles files(path);
  const Recipe recipe = files.read_config();
  const Graph graph = files.read_graph();
  const std::string spec = options.data.empty() ? recipe.data : absolute_data_spec(options.data);
  auto found = opened.find(spec);
  if (found == opened.end()) found = opened.emplace(spec, open_data(spec)).first;
  const DataSource& source = found->second;
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
              result.soft,
              count_network(graph, CountRules::kPlain).params};
  if (!has_sal) return {row};
  row.form = "soft";
  EvalRow hard = row;
  hard.form = binarize == "round" ? "round" : "hard";
  hard.score = result.hard;
  hard.params = count_network(graph, CountRules::kPaper).params;
  return {row, hard};
}

void print_eval_json(const std::vector<EvalRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EvalRow& row : rows) {
    list.push_back({{"run", row.run},
                    {"network", row.network},
                    {"method", row.method},
                    {"form", row.form},
                    {"step", row.step},
                    {"accuracy", row.score.accuracy},
                    {"loss", row.score.loss},
                    {"params", row.params}});
  }
  std::cout << list.dump(2) << '\n';
}

void print_eval_table(const std::vector<EvalRow>& rows) {
  using A = Table::Align;
  Table table({{"run"},
               {"network"},
               {"method"},
               {"form"},
               {"accuracy", A::kRight},
               {"loss", A::kRight},
               {"params", A::kRight}});
  for (const EvalRow& row : rows) {
    table.add({row.run, row.network, row.method, row.form, percent_text(row.score.accuracy),
               fmt::format("{:.4f}", row.score.loss), with_thousands(row.params)});
  }
  std::cout << table.text();
}

int run_eval(const EvalArguments& options) {
  torch::set_num_threads(static_cast<int>(options.threads > 0 ? options.threads : available_cpus()));
  std::map<std::string, DataSource> opened;
  std::vector<EvalRow> rows;
  for (const std::string& path : options.runs) {
    const auto more = evaluate_run(options, path, opened);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  options.json ? print_eval_json(rows) : print_eval_table(rows);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalArguments>();
  CLI::App* verb = app.add_subcommand("eval", "accuracy of runs on their test set, soft and hard");
  verb->add_option("RUN", options->runs, "run directories")->required();
  verb->add_option("--data", options->data,
                   "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR (default: the run's own)")
      ->option_text("TEXT");
  verb->add_option("--checkpoint", options->checkpoint, "last, best or a step number")->option_text("WHICH [last]");
  verb->add_option("--binarize", options->binarize, "best tap (hard) or P > 0.5 (round) (default: the run's own)")
      ->check(CLI::IsMember({"hard", "round"}))
      ->option_text("hard|round");
  verb->add_option("--batch-size", options->batch_size, "images at a time (default: the run's own)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  verb->add_option("--device", options->device, "auto, cpu, cuda or cuda:N")->option_text("TEXT [auto]");
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  verb->add_flag("--json", options->json, "for programs");
  verb->footer(
      "Examples:\n"
      "  onetap eval runs/first\n"
      "  onetap eval runs/dense runs/sal --json\n"
      "  onetap eval runs/sanet --data cifar10:DIR --checkpoint best\n"
      "\nForms: dense; soft, every weight scaled by its attention (params: all trainable values); hard, the kept\n"
      "taps alone (params: 32-bit words of kept weights and positions, as the paper counts).");
  verb->callback([options, &action] { action = [options] { return run_eval(*options); }; });
}

}  // namespace onetap::tool
