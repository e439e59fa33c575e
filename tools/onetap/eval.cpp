// onetap eval: accuracy of runs, soft and hard, and of frozen networks.
#include "tools/onetap/eval.h"

#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/data/score.h"
#include "onetap/graph/method.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"
#include "tools/onetap/class_table.h"
#include "tools/onetap/classify.h"
#include "tools/onetap/console.h"
#include "tools/onetap/executor.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/frozen_count.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/table.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <memory>

namespace onetap::tool {

std::vector<EvalRow> evaluate_tap(const EvalArguments& options, const std::string& path, OpenedData& opened) {
  const TapNet net = read_tap(path);
  if (options.data.empty()) fail_usage("[eval] {} does not record its training data: expected --data", path);
  const auto source = opened.open(options.data);
  ScoreOptions score;
  const auto run = naming_file(path, [&] {
    net.graph.check_classifier(static_cast<int64_t>(source->classes.size()));
    score.view = network_view(net.graph, net.pixels, "eval");
    return make_executor(net, {options.reference, options.memory_limit});
  });
  score.threads = options.threads > 0 ? options.threads : available_cpus();
  if (console().shows_progress()) {
    score.progress = [&](int64_t images) {
      console().progress(fmt::format("{}: testing {}/{}", path, images, source->test->size()));
    };
  }
  const Predictions said = score_classifier(*source->test, score, run);
  console().clear_progress();
  said.check_finite("eval", path);
  EvalRow row{path,
              net.graph.name(),
              method_of(net.graph),
              "frozen",
              frozen_step(net),
              said.accuracy(),
              said.loss(),
              count_frozen(net, {CountRules::kPaper, ShortcutRule::kAuto}).params,
              weight_type_name(net)};
  if (options.per_class) row.classes = class_scores(said, source->classes);
  return {row};
}

namespace {

void print_eval_json(const std::vector<EvalRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EvalRow& row : rows) {
    nlohmann::ordered_json object = {{"run", row.path},  {"network", row.network}, {"method", row.method},
                                     {"form", row.form}, {"step", nullptr},        {"accuracy", row.accuracy},
                                     {"loss", row.loss}, {"params", row.params}};
    if (row.step) object["step"] = *row.step;
    if (!row.weights.empty()) object["weights"] = row.weights;
    if (row.classes) {
      object["top5"] = row.classes->top5;
      object["per_class"] = class_json(*row.classes);
    }
    list.push_back(std::move(object));
  }
  std::cout << json_text(list, 2) << '\n';
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
    const std::string form = row.weights.empty() ? row.form : row.form + ' ' + row.weights;
    table.add({row.path, row.network, row.method, form, percent_text(row.accuracy), fmt::format("{:.4f}", row.loss),
               with_thousands(row.params)});
  }
  std::cout << table.text();
  for (const EvalRow& row : rows) {
    if (!row.classes) continue;
    std::cout << '\n';
    console().print(fmt::format("{}, {}", row.path, row.form));
    std::cout << class_table(*row.classes);
  }
}

std::map<std::string, Binarize> binarize_words() {
  std::map<std::string, Binarize> words;
  for (const auto& spelling : Choices<Binarize>::kAll) words[spelling.word] = spelling.value;
  return words;
}

int run_eval(const EvalArguments& options) {
  OpenedData opened;
  std::vector<EvalRow> rows;
  for (const std::string& path : options.paths) {
    const auto evaluate = names_tap(path) ? evaluate_tap : open_training("eval").evaluate_run;
    const auto more = evaluate(options, path, opened);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  opened.warn_of_unreadable();
  options.json ? print_eval_json(rows) : print_eval_table(rows);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalArguments>();
  CLI::App* verb =
      app.add_subcommand("eval", "measure the accuracy of runs (soft and hard) and of .tap files on a test set");
  verb->add_option("RUN", options->paths, "run directories and .tap files")->required();
  verb->add_option("--data", options->data,
                   "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR (default: the run's own; needed for a .tap)")
      ->check(offered(data_words()))
      ->option_text("TEXT");
  verb->add_option("--checkpoint", options->checkpoint, "last, best or a step number")
      ->check(offered(checkpoint_words()))
      ->option_text("WHICH [last]");
  verb->add_flag("--no-ema", options->no_ema,
                 "use the weights of the last step instead of their moving average (runs with --ema)");
  verb->add_option("--binarize", options->binarize, "best tap (hard) or P > 0.5 (round) (default: the run's own)")
      ->transform(CLI::Transformer(binarize_words()))
      ->option_text("hard|round");
  verb->add_option("--batch-size", options->batch_size, "images at a time (default: the run's own)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  verb->add_option("--device", options->device, "auto, cpu, cuda or cuda:N")
      ->check(offered(device_words()))
      ->option_text("TEXT [auto]");
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  verb->add_flag(
      "--reference", options->reference,
      "run .tap files with the reference executor: slow plain loops, against which the fast kernels are tested");
  add_memory_option(*verb, options->memory_limit);
  verb->add_flag("--per-class", options->per_class,
                 "also top-5 accuracy, the accuracy of every class and the confusion matrix (of the hard network); for "
                 "a run they are stored in classes.json, which 'onetap report' shows");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap eval runs/first\n"
      "  onetap eval runs/dense runs/sal --json\n"
      "  onetap eval runs/sanet --data cifar10:DIR --checkpoint best\n"
      "  onetap eval model.tap --data cifar10:DIR\n"
      "  onetap eval runs/first --per-class\n"
      "\nForms: dense; soft, every weight scaled by its attention (params: all trainable values); hard, only the\n"
      "kept taps (params: 32-bit words of kept weights and positions, as the paper counts); frozen, a .tap file,\n"
      "run without LibTorch.");
  verb->callback([options, &action] { action = [options] { return run_eval(*options); }; });
}

}  // namespace onetap::tool
