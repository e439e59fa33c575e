// onetap sensitivity: what hardening each layer by itself costs.
#include "onetap/train/sensitivity.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/train/finite.h"
#include "tools/onetap/console.h"
#include "tools/onetap/open_run.h"
#include "tools/onetap/signals.h"
#include "tools/onetap/table.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

namespace onetap::tool {
namespace {

struct SensitivityArguments {
  RunArguments run;
  std::string sort = "network";
  bool json = false;
};

double layer_params(const NetworkCount& count, const std::string& name) {
  const auto found = std::find_if(count.layers.begin(), count.layers.end(),
                                  [&](const LayerCount& layer) { return layer.name == name; });
  return found == count.layers.end() ? 0 : found->params;
}

void print_sensitivity_json(const Sensitivity& result, const NetworkCount& count) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Sensitivity::Layer& layer : result.layers) {
    layers.push_back({{"name", layer.name},
                      {"accuracy", layer.alone.accuracy},
                      {"cost", result.soft.accuracy - layer.alone.accuracy},
                      {"loss", layer.alone.loss},
                      {"loss_increase", layer.alone.loss - result.soft.loss},
                      {"params", layer_params(count, layer.name)}});
  }
  const nlohmann::ordered_json object = {{"images", result.images},
                                         {"soft", {{"accuracy", result.soft.accuracy}, {"loss", result.soft.loss}}},
                                         {"hard", {{"accuracy", result.hard.accuracy}, {"loss", result.hard.loss}}},
                                         {"layers", layers}};
  std::cout << json_text(object, 2) << '\n';
}

void print_sensitivity_table(const Sensitivity& result, const NetworkCount& count) {
  using A = Table::Align;
  Table table({{"hard layer"},
               {"accuracy", A::kRight},
               {"cost (points)", A::kRight},
               {"loss", A::kRight},
               {"loss increase", A::kRight},
               {"params", A::kRight}});
  const auto add = [&](const std::string& name, const Score& score, const std::string& params) {
    table.add({name, percent_text(score.accuracy),
               fmt::format("{:+.2f}", 100 * (result.soft.accuracy - score.accuracy)), fmt::format("{:.4f}", score.loss),
               fmt::format("{:+.4f}", score.loss - result.soft.loss), params});
  };
  add("none (soft)", result.soft, "");
  table.rule();
  for (const Sensitivity::Layer& layer : result.layers) {
    add(layer.name, layer.alone, with_thousands(layer_params(count, layer.name)));
  }
  table.rule();
  add("all", result.hard, "");
  std::cout << table.text() << fmt::format("\n{} test images; params: 32-bit words the layer keeps\n", result.images);
}

int run_sensitivity(const SensitivityArguments& options) {
  OpenedData opened;
  OpenRun run = open_run(options.run, opened);
  if (run.module->soft_layers().empty()) {
    fail_data("[sensitivity] expected a run with Shift Attention Layers, got {} ({})",
              has_methods(run.graph) ? method_summary(run.graph) : "a dense one", options.run.run);
  }
  install_signal_handlers();
  SensitivityOptions measure;
  measure.stream = run.test_stream();
  measure.stream.stopped = [] { return stop_requested.load(); };
  measure.device = run.device;
  measure.stream.images = options.run.images;
  const int64_t total = run.source->test->first(options.run.images);
  measure.progress = [&](int64_t images) {
    console().progress(fmt::format("{} layers on {}/{} images", run.module->soft_layers().size(), images, total));
    return !stop_requested.load();
  };
  auto result = [&] {
    try {
      return measure_sensitivity(run.module, *run.source->test, measure);
    } catch (const NotFinite& problem) {
      throw at_checkpoint(problem, run);
    }
  }();
  console().clear_progress();
  if (!result) return signal_exit_code();
  opened.warn_of_unreadable();
  if (options.sort == "cost") {
    std::stable_sort(result->layers.begin(), result->layers.end(), [](const auto& a, const auto& b) {
      return a.alone.accuracy != b.alone.accuracy ? a.alone.accuracy < b.alone.accuracy : a.alone.loss > b.alone.loss;
    });
  }
  const NetworkCount count = count_network(run.graph, CountRules::kPaper);
  options.json ? print_sensitivity_json(*result, count) : print_sensitivity_table(*result, count);
  return 0;
}

}  // namespace

void add_sensitivity(CLI::App& app, Action& action) {
  auto options = std::make_shared<SensitivityArguments>();
  CLI::App* verb = app.add_subcommand(kSensitivity.name, kSensitivity.summary);
  options->run.add(*verb, RunArguments::Where::kAnyDevice);
  verb->add_option("--sort", options->sort, "order of the layers: as in the network, or the costliest first")
      ->check(CLI::IsMember({"network", "cost"}))
      ->option_text("network|cost [network]");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap sensitivity runs/sanet\n"
      "  onetap sensitivity runs/sanet --checkpoint 3910 --sort cost --images 2000\n"
      "\nEach line hardens one layer while the others stay soft, at the temperature of the checkpoint: an early\n"
      "checkpoint shows which layers have not converged. Layers that cost too much can be left dense:\n"
      "  onetap train RECIPE --layers '!layer3.2.*' --out RUN");
  verb->callback([options, &action] { action = [options] { return run_sensitivity(*options); }; });
}

}  // namespace onetap::tool
