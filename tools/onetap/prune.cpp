// onetap prune: channels of a dense run scored and cut, ready to be fine-tuned.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/prune/cut_module.h"
#include "onetap/prune/l1.h"
#include "onetap/prune/nisp.h"
#include "onetap/prune/pcas.h"
#include "onetap/train/finite.h"
#include "onetap/train/resolve.h"
#include "tools/onetap/console.h"
#include "tools/onetap/open_run.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/prune_report.h"
#include "tools/onetap/signals.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

struct PruneArguments {
  RunArguments run;
  std::string by, preset, layers, out;
  std::optional<double> ratio;
  int64_t epochs = 1;
  int64_t score_images = 10000;
  std::optional<int64_t> seed;
  bool json = false;

  bool looks_at_images() const { return by != "l1"; }
};

void check_prune(const PruneArguments& options) {
  if (options.ratio.has_value() == !options.preset.empty()) {
    fail_usage("[prune] expected --ratio or --preset, got {}", options.ratio ? "both" : "neither");
  }
  if (options.ratio && !(*options.ratio > 0 && *options.ratio < 1)) {
    fail_usage("[prune] expected a --ratio above 0 and below 1, got {}", *options.ratio);
  }
  if (!options.preset.empty() && options.by == "pcas") {
    fail_usage(
        "[prune] expected --ratio with --by pcas, which ranks the channels of all layers together, got --preset");
  }
  if (!options.preset.empty() && !options.layers.empty()) {
    fail_usage("[prune] expected --layers or --preset, which names its layers, got both");
  }
}

// A place for a directory that is not there yet, or empty.
fs::path checked_place(const std::string& text) {
  check_output_folder("prune", text);
  fs::path place = fs::weakly_canonical(fs::absolute(text));  // a link to an empty folder stays
  if (!place.has_filename()) place = place.parent_path();
  return place;
}

std::vector<std::string> chosen_convs(const PruneArguments& options, const Graph& graph) {
  const std::vector<std::string> all = cuttable_convs(graph);
  if (all.empty()) {
    fail_usage("[prune] expected a convolution whose channels can be cut by themselves, got none in {} ({})",
               graph.name(), options.run.run);
  }
  // Like other methods, the first convolution of all is left alone unless it is named.
  std::vector<std::string> usual = all;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConv) continue;
    usual.erase(std::remove(usual.begin(), usual.end(), node.name), usual.end());
    break;
  }
  const auto chosen =
      select_names(all, usual, options.layers,
                   fmt::format("convolution of {} whose channels can be cut by themselves", graph.name()));
  if (chosen.empty())
    fail_usage("[prune] expected --layers that name one of {}, got none ({})", join(all, ", "), options.run.run);
  std::vector<std::string> in_order;
  std::copy_if(all.begin(), all.end(), std::back_inserter(in_order),
               [&](const std::string& name) { return std::find(chosen.begin(), chosen.end(), name) != chosen.end(); });
  return in_order;
}

ImageScoreOptions score_options(const PruneArguments& options, const OpenRun& run) {
  ImageScoreOptions score;
  score.stream = recipe_stream(run.recipe, run.test_stream().view, /*train=*/true);
  if (options.seed) score.stream.seed = static_cast<uint64_t>(*options.seed);
  score.stream.stopped = [] { return stop_requested.load(); };
  score.images = options.score_images;
  score.device = run.device;
  const int64_t all = run.source->train->size(), some = std::min(all, options.score_images);
  score.progress = [all, some, epochs = options.epochs](const std::string& stage, int64_t images) {
    console().progress(fmt::format("{}: {}/{} images", stage, images, stage == "attention" ? all * epochs : some));
    return !stop_requested.load();
  };
  return score;
}

// Nothing if a signal stopped it.
std::optional<std::vector<LayerScores>> channel_scores(const PruneArguments& options, OpenRun& run,
                                                       const std::vector<std::string>& convs) {
  if (options.by == "l1") return score_l1(run.module, convs);
  if (options.by == "nisp") return score_nisp(run.module, *run.source->train, convs, score_options(options, run));
  PcasOptions pcas;
  pcas.score = score_options(options, run);
  pcas.epochs = options.epochs;
  pcas.seed = pcas.score.stream.seed;
  return score_pcas(run.module, *run.source->train, convs, pcas);
}

ChannelPlan chosen_channels(const PruneArguments& options, const std::vector<LayerScores>& scores,
                            const LayerRatios& ratios) {
  return options.by == "pcas" ? keep_best_of_all(scores, *options.ratio) : keep_best_of_each(scores, ratios);
}

std::optional<EvalResult> test_network(const PruneArguments& options, const OpenRun& run, nn::GraphModule& module) {
  EvalOptions eval;
  eval.stream = run.test_stream();
  eval.stream.images = options.run.images;
  eval.stream.stopped = [] { return stop_requested.load(); };
  eval.device = run.device;
  eval.progress = [of = run.source->test->first(options.run.images)](int64_t images) {
    console().progress(fmt::format("test: {}/{} images", images, of));
    return !stop_requested.load();
  };
  try {
    return evaluate(module, *run.source->test, eval);
  } catch (const NotFinite& problem) {
    throw at_checkpoint(problem, run);
  }
}

int run_prune(const PruneArguments& options) {
  check_prune(options);
  PruneReport report;
  report.directory = checked_place(options.out);
  OpenedData opened;
  const bool with_data = options.looks_at_images() || !options.run.data.empty();
  OpenRun run = with_data ? open_run(options.run, opened) : open_network(options.run);
  if (has_methods(run.graph)) {
    fail_data("[prune] expected a dense run, got {}: channels are cut out of dense networks ({})",
              method_summary(run.graph), options.run.run);
  }
  const std::vector<std::string> convs = chosen_convs(options, run.graph);
  LayerRatios ratios;
  if (options.ratio) {
    for (const std::string& conv : convs) ratios[conv] = *options.ratio;
  } else {
    ratios = preset_ratios(run.graph, options.preset);
  }
  StagedDirectory staged(report.directory);  // a place that cannot be written to is known before the long part
  install_signal_handlers();

  const auto scores = channel_scores(options, run, convs);
  if (!scores) return signal_exit_code();
  report.plan = chosen_channels(options, *scores, ratios);
  const ChannelCut cut = cut_channels(run.graph, report.plan);
  nn::GraphModule smaller = cut_module(run.module, cut);
  if (with_data) {
    report.score_before = test_network(options, run, run.module);
    if (report.score_before) report.score_after = test_network(options, run, smaller);
    if (!report.score_after) return signal_exit_code();
  }
  console().clear_progress();
  opened.warn_of_unreadable();

  report.by = options.by;
  report.ratio = options.ratio;
  report.preset = options.preset;
  report.before = run.graph;
  report.after = cut.graph;
  report.data = options.run.data.empty() ? run.recipe.data : options.run.data;
  const std::string json = json_text(prune_json(report), 2) + "\n";
  write_file_atomic(staged.path() / report.network().filename(), network_text(cut.graph));
  nn::write_tensors(staged.path() / report.weights().filename(), nn::state_of(*smaller), pixel_metadata_of(run.recipe));
  write_file_atomic(staged.path() / "pruning.json", json);
  staged.commit();
  if (options.json) {
    std::cout << json;
  } else {
    std::cout << prune_tables(report) << "\nFine-tune it:\n";
    console().print("  " + fine_tune_command(report));
  }
  return 0;
}

}  // namespace

void add_prune(CLI::App& app, Action& action) {
  auto options = std::make_shared<PruneArguments>();
  CLI::App* verb = app.add_subcommand(kPrune.name, kPrune.summary);
  options->run.add(*verb, RunArguments::Where::kAnyDevice);
  verb->add_option("--by", options->by,
                   "score of a channel: sum of |w| of its filter, importance propagated from the classifier, or mean "
                   "attention")
      ->required()
      ->check(CLI::IsMember({"l1", "nisp", "pcas"}))
      ->option_text("l1|nisp|pcas");
  verb->add_option(
          "--ratio", options->ratio,
          "fraction of the channels to remove: of every layer with l1 and nisp, of all layers together with pcas")
      ->option_text("X");
  verb->add_option("--preset", options->preset,
                   "instead of --ratio: the fractions of a published ResNet-56, layer by layer (Li et al.)")
      ->check(CLI::IsMember(preset_names()))
      ->option_text(join(preset_names(), "|"));
  verb->add_option("--layers", options->layers,
                   "only these layers: globs separated by commas, '!' excludes (default: all whose channels can be cut "
                   "by themselves, except the first)")
      ->option_text("GLOBS");
  verb->add_option("--epochs", options->epochs, "pcas: passes over the training set to train the attention")
      ->check(CLI::Range(1, 100000))
      ->option_text("N [1]");
  verb->add_option("--score-images", options->score_images, "nisp, pcas: number of training images for the scores")
      ->check(CLI::Range(2, 1 << 30))
      ->option_text("N [10000]");
  verb->add_option("--seed", options->seed, "nisp, pcas: random seed of order and attention (default: the run's)")
      ->check(CLI::NonNegativeNumber)
      ->option_text("N");
  verb->add_option("-o,--out", options->out, "directory for network.txt, weights.safetensors and pruning.json")
      ->required()
      ->option_text("DIR");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap prune runs/resnet56 --by l1 --preset pruned-b --data cifar10 -o pruned/b\n"
      "  onetap prune runs/resnet56 --by nisp --ratio 0.425 -o pruned/nisp\n"
      "  onetap prune runs/resnet56 --by pcas --ratio 0.5 --epochs 2 --layers '!layer1.*' -o pruned/pcas\n"
      "\nThe network in -o is smaller: the channels are removed with the weights that compute and read them. Channels "
      "that\n"
      "enter a sum are kept; in residual blocks only the inner channels are removed. Accuracy before and after the cut "
      "is\n"
      "measured with --data, and always with nisp and pcas. The last line printed is the command that fine-tunes the "
      "network.");
  verb->callback([options, &action] { action = [options] { return run_prune(*options); }; });
}

}  // namespace onetap::tool
