// onetap bench train: what a training step costs.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/data/source.h"
#include "onetap/train/engine_choice.h"
#include "onetap/train/parameter_rules.h"
#include "onetap/train/resolve.h"
#include "onetap/train/teacher.h"
#include "tools/onetap/console.h"
#include "tools/onetap/recipe_file.h"
#include "tools/onetap/recipe_flags.h"
#include "tools/onetap/table.h"
#include "tools/onetap/time_in_turns.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace onetap::tool {
namespace {

using Json = nlohmann::ordered_json;

struct TrainBench {
  std::string recipe_path;
  RecipeFlags flags;
  int64_t steps = 200;
  bool json = false;
};

struct Phases {
  const char* name;
  fused::Phase last;
};
constexpr Phases kPhases[] = {
    {"sample", fused::Phase::kSample}, {"weights", fused::Phase::kPack},      {"forward", fused::Phase::kForward},
    {"loss", fused::Phase::kLoss},     {"backward", fused::Phase::kBackward}, {"update", fused::Phase::kUpdate},
};

double median(const std::vector<double>& seconds) {
  return quantiles(seconds).median;
}

int run_bench_train(const TrainBench& bench) {
  Recipe recipe = read_recipe_request(bench.recipe_path, bench.flags).recipe;
  check_recipe(recipe);
  const DataSource source = open_data(recipe_data(recipe));
  recipe = resolve_recipe(recipe, source);
  const Graph graph = recipe_network(recipe, static_cast<int64_t>(source.classes.size()), *recipe.image_size);
  check_network(graph, source);
  torch::set_num_threads(static_cast<int>(recipe.threads));
  torch::manual_seed(recipe.seed);
  nn::GraphModule module(graph);
  const torch::Device device = parse_device(recipe.device, "bench train");
  module->to(device);
  const auto optimizer = make_optimizer(recipe, module);
  const int64_t per_epoch = (source.train->size() + recipe.batch_size - 1) / recipe.batch_size;
  if (recipe.engine == EngineChoice::kPlain) {
    fail_usage(
        "[bench] expected --engine auto, fused or captured, got plain (--engine captured --no-cuda-graph times "
        "autograd op by op)");
  }
  if (recipe.engine == EngineChoice::kAuto) {
    recipe.engine = fused::engine_obstacle(graph).empty() ? EngineChoice::kFused : EngineChoice::kCaptured;
  }
  nn::GraphModule teacher{nullptr};
  if (!recipe.teacher.empty()) {
    teacher = load_teacher(recipe, graph, source, {}).module;
    teacher->to(device);
  }
  const auto engine =
      choose_engine(recipe, graph, source, Schedule(recipe, per_epoch), module, *optimizer, {}, nullptr, {}, teacher);
  engine->start_epoch(0, 0, 0);

  // In rounds, so that a machine that slows down does so for all.
  constexpr int kRounds = 3;
  std::vector<std::vector<double>> upto(std::size(kPhases));
  std::vector<double> convolutions;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < std::size(kPhases); ++i) upto[i].push_back(engine->time_step(kPhases[i].last, bench.steps));
    convolutions.push_back(engine->time_convolutions(bench.steps));
    console().progress(fmt::format("measuring: {} of {}", round + 1, kRounds));
  }
  console().clear_progress();
  const double step = median(upto.back()), floor = median(convolutions);
  Json phases = Json::object();
  double before = 0;
  for (size_t i = 0; i < std::size(kPhases); ++i) {
    const double until = median(upto[i]);
    phases[kPhases[i].name] = std::max(0.0, until - before) * 1e3;
    before = until;
  }
  const std::string on = device.is_cuda() ? "cuda" : "cpu";
  const bool graphs = device.is_cuda() && recipe.cuda_graph;
  const std::string share = recipe_field_text(recipe, *find_recipe_field("share"));
  const auto share_number = parse_int(share);
  if (bench.json) {
    const Json object = {{"network", graph.name()},
                         {"method", recipe.method},
                         {"width", recipe.width.value_or(0)},
                         {"share", share_number ? Json(*share_number) : Json(share)},
                         {"device", on},
                         {"engine", choice_word(recipe.engine)},
                         {"cuda_graph", graphs},
                         {"precision", choice_word(resolved_precision(recipe, device))},
                         {"batch", engine->first_batch()},
                         {"ms_per_step", step * 1e3},
                         {"img_per_s", static_cast<double>(engine->first_batch()) / step},
                         {"convolutions_ms", floor * 1e3},
                         {"share_of_floor", floor / step},
                         {"phases_ms", phases}};
    std::cout << json_text(object, 2) << '\n';
    return 0;
  }
  std::cout << fmt::format("{} {} width {} share {}, batch {}, {} on {}, {} steps{}\n", graph.name(), recipe.method,
                           recipe.width.value_or(0), share, engine->first_batch(),
                           choice_word(resolved_precision(recipe, device)), on, choice_word(recipe.engine),
                           graphs ? " as CUDA graphs" : "");
  std::cout << fmt::format("{:.3f} ms per step, {:.0f} images per second\n", step * 1e3,
                           static_cast<double>(engine->first_batch()) / step);
  std::cout << fmt::format("its convolutions alone (forward and both gradients): {:.3f} ms, {:.0f} % of the step\n\n",
                           floor * 1e3, 100 * floor / step);
  Table table({{"phase"}, {"ms", Table::Align::kRight}, {"of the step", Table::Align::kRight}});
  for (const auto& [name, ms] : phases.items()) {
    table.add({name, fmt::format("{:.3f}", ms.get<double>()),
               fmt::format("{:.0f} %", 100 * ms.get<double>() / (step * 1e3))});
  }
  std::cout << table.text();
  return 0;
}

}  // namespace

void add_bench_train(CLI::App& bench, Action& action) {
  auto options = std::make_shared<TrainBench>();
  CLI::App* verb = bench.add_subcommand(kBenchTrain.name, kBenchTrain.summary);
  verb->add_option("RECIPE", options->recipe_path, "a recipe (default: the recipe's defaults)")->check(recipe_file());
  options->flags.add(*verb);
  verb->add_option("--steps", options->steps, "steps per measurement")
      ->check(CLI::Range(1, 100000))
      ->option_text("N [200]");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap bench train recipes/cifar10-sanet.toml\n"
      "  onetap bench train --arch resnet20 --width 83 --method sal --data cifar10 --precision bf16 --json\n"
      "  onetap bench train --width 16 --shortcut A --engine captured\n"
      "\nFused steps, or captured ones of autograd for a network without a fused form; on a GPU, CUDA graphs. Phases "
      "are\n"
      "differences between steps that end early. The time of the convolutions alone is a lower bound for a step.");
  verb->callback([options, &action] { action = [options] { return run_bench_train(*options); }; });
}

}  // namespace onetap::tool
