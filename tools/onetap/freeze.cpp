// onetap freeze: a run to a .tap file, or a .tap file to a smaller one; every stage checked on the test set.
#include "onetap/freeze/freeze.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/version.h"
#include "onetap/batches/recalibrate.h"
#include "onetap/count/count.h"
#include "onetap/freeze/clear_dropped.h"
#include "onetap/freeze/verify.h"
#include "onetap/graph/method.h"
#include "onetap/journal/run_files.h"
#include "onetap/runtime/model.h"
#include "onetap/tap/drop.h"
#include "onetap/tap/tap_file.h"
#include "onetap/train/resolve.h"
#include "tools/onetap/classify.h"
#include "tools/onetap/console.h"
#include "tools/onetap/freeze_report.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/open_run.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

struct FreezeArguments {
  RunArguments run;
  std::string out;
  std::optional<WeightType> type;  // of a run: 32-bit floats by default
  int64_t recalibrate = 0;         // training images
  DropOptions drop;
  int64_t memory_limit = 0;
  bool json = false;

  bool drops_zeros_alone() const { return drop.below == 0 && !drop.density; }
};

// Beside the file to write, and into place only once it has passed: a file that is there has been checked.
class UncheckedFile {
 public:
  explicit UncheckedFile(const fs::path& out) : out_(out), aside_(out) { aside_ += ".unchecked"; }
  UncheckedFile(const UncheckedFile&) = delete;
  UncheckedFile& operator=(const UncheckedFile&) = delete;
  ~UncheckedFile() {
    std::error_code ignored;
    fs::remove(aside_, ignored);
  }

  void write(const TapNet& net) const { write_tap(aside_, net); }
  TapNet read() const { return read_tap(aside_); }
  void put_in_place() const { onetap::put_in_place(aside_, out_); }

 private:
  const fs::path out_;
  fs::path aside_;
};

TapNet frozen_net(const FreezeArguments& options, const OpenRun& run) {
  TapNet net = freeze(run.module, options.type.value_or(WeightType::kF32));
  const Normalisation pixels = recipe_normalisation(run.recipe, *run.source);
  net.pixels = {pixels.mean, pixels.sd};
  net.classes = run.source->classes;
  net.facts = {{"onetap", ONETAP_VERSION},
               {"step", std::to_string(run.checkpoint.state.step)},
               {"method", method_summary(run.graph)}};
  if (options.run.checkpoint != "last") net.facts["checkpoint"] = options.run.checkpoint;
  net.value_ranges =
      read_ranges(run.checkpoint, run.graph, options.run.no_ema ? KeptWeights::kTrained : KeptWeights::kAveraged);
  return net;
}

// The network without what is dropped, which it says of itself.
DropResult drop_from(TapNet& net, const DropOptions& options) {
  DropResult result = drop_weights(net, options);
  if (result.dropped > 0) {
    net.facts["dropped"] = fmt::format("{} of {} tap weights", result.dropped, result.weights);
  }
  return result;
}

VerifyOptions verify_options(const FreezeArguments& options, const StreamOptions& stream, const Dataset& test) {
  VerifyOptions verify;
  verify.stream = stream;
  verify.threads = options.run.thread_count();
  verify.memory_limit = options.memory_limit;
  verify.stream.images = test.first(options.run.images);
  verify.progress = [of = verify.stream.images](const std::string& stage, int64_t images) {
    console().progress(fmt::format("{}: {}/{} images", stage, images, of));
  };
  return verify;
}

void check_memory(const TapNet& net, const FreezeArguments& options) {
  ModelOptions model;
  model.memory_limit = options.memory_limit;
  const Model fits(net, model);
}

int64_t recalibrate_run(const FreezeArguments& options, OpenRun& run) {
  RecalibrateOptions recalibration;
  recalibration.stream = recipe_stream(run.recipe, run.test_stream().view, /*train=*/true);
  recalibration.images = options.recalibrate;
  recalibration.progress = [&](int64_t images) {
    console().progress(fmt::format("statistics of {}/{} training images", images, options.recalibrate));
    return true;
  };
  return recalibrate(run.module, *run.source->train, recalibration).value();
}

void measure(const OpenRun& run, FreezeReport& report) {
  Graph dense = run.graph;
  apply_method(dense, Method{}, "");
  report.checkpoint = fs::file_size(run.checkpoint.path / "model.safetensors");
  report.dense = static_cast<uint64_t>(4 * count_network(dense, CountRules::kPlain).params);
}

// Statistics without what `net` lacks, and then the network with them.
TapNet recalibrated_net(const FreezeArguments& options, OpenRun& run, const TapNet& net, StageCheck& check) {
  if (!options.drops_zeros_alone()) {
    clear_dropped(run.module, net);
    check.dropped(run.module);
  }
  const int64_t images = recalibrate_run(options, run);
  check.recalibrated(run.module);
  TapNet again = frozen_net(options, run);
  again.value_ranges.clear();  // they were found with other statistics
  again.facts["recalibrated"] = fmt::format("{} images", images);
  return again;
}

// Of a checkpoint before the last: its taps may not be those that the run would have ended with. Not of the best one of
// a run that has ended: it was chosen among all.
std::optional<std::string> unfinished_warning(const FreezeArguments& options, const OpenRun& run) {
  const int64_t per_epoch = BatchStream::batch_count(run.source->train->size(), run.recipe.batch_size);
  const RunState& state = run.checkpoint.state;
  if (state.ended || state.step >= per_epoch * run.recipe.all_epochs()) return std::nullopt;
  if (options.run.checkpoint == "best" && RunFiles(options.run.run).finished()) return std::nullopt;
  const std::string where = fmt::format("this checkpoint is from step {}, epoch {} of {}", state.step,
                                        state.step / per_epoch, run.recipe.all_epochs());
  if (!has_soft_form(run.graph)) return where;
  return fmt::format("{}, at temperature {:.3g} (t1 is {:.3g}): the taps may still change", where, state.temperature,
                     run.recipe.t1);
}

void add_warnings(const FreezeArguments& options, const OpenRun& run, bool for_int8, FreezeReport& report) {
  constexpr int64_t kUsualImages = 5000;
  const int64_t images = std::min(kUsualImages, run.source->train->size());
  const bool own_data = options.run.data.empty();  // else steps of an epoch are not known
  if (const auto text = own_data ? unfinished_warning(options, run) : std::nullopt) report.warnings.push_back(*text);
  if (for_int8) return;  // such a run is hard from its first step on
  if (const auto text = hardening_warning(report.stages, images)) report.warnings.push_back(*text);
}

void add_unreadable(const DataSource& source, FreezeReport& report) {
  if (const std::string text = unreadable_warning(source); !text.empty()) report.warnings.push_back(text);
}

FreezeReport freeze_run(const FreezeArguments& options) {
  FreezeReport report;
  report.out = options.out.empty() ? RunFiles(options.run.run).model() : fs::path(options.out);
  if (!options.out.empty() || RunFiles(options.run.run).holds_run()) check_output_file("freeze", report.out);
  OpenedData opened;
  OpenRun run = open_run(options.run, opened);
  const UncheckedFile file(report.out);
  const TapNet whole = frozen_net(options, run);
  const bool for_int8 = !whole.value_ranges.empty();  // its norms and taps are fixed
  if (for_int8 && options.recalibrate > 0) {
    fail_usage("[freeze] expected no --recalibrate for a run with --quantize: its ranges belong to its statistics ({})",
               options.run.run);
  }
  TapNet net = whole;
  report.drop = drop_from(net, options.drop);
  // At once: a place that cannot be written to, or a network too large to be checked, is known before the long part.
  file.write(net);
  check_memory(whole, options);
  StageCheck check(*run.source->test, verify_options(options, run.test_stream(), *run.source->test));
  check.trained(run.module);
  if (options.recalibrate > 0) {
    net = recalibrated_net(options, run, net, check);
    const double below = report.drop.below;
    report.drop = drop_from(net, {});  // what was dropped is zero now
    report.drop.below = below;
    file.write(net);
    check.frozen("folded", net);
  } else {
    check.frozen("folded", whole);
    if (!(net.graph == whole.graph)) check.frozen("dropped", net);
  }
  check.frozen("file", file.read());
  console().clear_progress();
  check_stages(check.stages(), net.weight_type, options.drops_zeros_alone());
  file.put_in_place();
  report.stages = check.stages();
  add_warnings(options, run, for_int8, report);
  add_unreadable(*run.source, report);
  measure(run, report);
  return report;
}

void refuse_flags_of_runs(const FreezeArguments& options) {
  const std::string& path = options.run.run;
  if (options.run.checkpoint != "last" || options.recalibrate > 0 || options.type || options.run.no_ema) {
    fail_usage("[freeze] {} is frozen: --checkpoint, --recalibrate, --no-ema and --dtype need a run", path);
  }
  if (options.run.data.empty()) fail_usage("[freeze] {} does not record its training data: expected --data", path);
  if (options.out.empty()) fail_usage("[freeze] expected -o, the file to write (a smaller {})", path);
}

FreezeReport freeze_tap(const FreezeArguments& options) {
  refuse_flags_of_runs(options);
  check_output_file("freeze", options.out);
  const TapNet given = read_tap(options.run.run);
  if (given.is_int8()) {
    fail_usage("[freeze] expected a network of floats, got an int8 one ({}): drop weights before 'onetap quantize'",
               options.run.run);
  }
  OpenedData opened;
  const auto source = opened.open(options.run.data);
  given.graph.check_classifier(static_cast<int64_t>(source->classes.size()));
  FreezeReport report;
  report.out = options.out;
  report.given = fs::file_size(options.run.run);
  const UncheckedFile file(report.out);
  TapNet net = given;
  report.drop = drop_from(net, options.drop);
  file.write(net);
  check_memory(given, options);
  StreamOptions stream;
  stream.view = network_view(given.graph, given.pixels, "freeze");
  StageCheck check(*source->test, verify_options(options, stream, *source->test));
  check.frozen("given", given);
  if (!(net.graph == given.graph)) check.frozen("dropped", net);
  check.frozen("file", file.read());
  console().clear_progress();
  check_stages(check.stages(), net.weight_type, options.drops_zeros_alone());
  file.put_in_place();
  report.stages = check.stages();
  add_unreadable(*source, report);
  return report;
}

int run_freeze(const FreezeArguments& options) {
  FreezeReport report = names_tap(options.run.run) ? freeze_tap(options) : freeze_run(options);
  report.file = fs::file_size(report.out);
  for (const std::string& warning : report.warnings) console().warn(warning);
  if (options.json) {
    std::cout << json_text(freeze_json(report), 2) << '\n';
    return 0;
  }
  std::cout << freeze_table(report) << '\n';
  for (const std::string& note : freeze_notes(report)) console().print(note);
  return 0;
}

// A threshold or a density, not both.
void add_drop_options(CLI::App& verb, DropOptions& drop) {
  auto* below = verb.add_option("--drop-below", drop.below,
                                "drop taps with a score below X: |w| divided by the norm of the layer's weights that "
                                "are not smaller (default: only weights that are exactly 0)");
  below->check(number_from(0, 1))->option_text("X [0]");
  verb.add_option("--density", drop.density,
                  "drop the taps with the lowest scores, so that this fraction of all tap weights is kept")
      ->check(positive_fraction())
      ->excludes(below)
      ->option_text("FRACTION");
}

}  // namespace

void add_freeze(CLI::App& app, Action& action) {
  auto options = std::make_shared<FreezeArguments>();
  CLI::App* verb = app.add_subcommand(kFreeze.name, kFreeze.summary);
  // The stages are compared to the last digits; a GPU convolves with fewer (TF32).
  options->run.add(*verb, RunArguments::Where::kCpu);
  verb->get_option("RUN")->description("a run directory, or a .tap file to drop weights from");
  verb->add_option("-o,--out", options->out, "the file to write (default: RUN/model.tap)")
      ->check(some_name())
      ->option_text("FILE");
  const std::map<std::string, WeightType> types = {{"f32", WeightType::kF32}, {"f16", WeightType::kF16}};
  verb->add_option("--dtype", options->type, "weights in the file: 32-bit or 16-bit floats")
      ->transform(CLI::Transformer(types))
      ->option_text("f32|f16 [f32]");
  verb->add_option("--recalibrate", options->recalibrate,
                   "recompute batch norm's statistics from N training images, with the kept taps only")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N");
  add_drop_options(*verb, options->drop);
  add_memory_option(*verb, options->memory_limit);
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap freeze runs/sanet -o model.tap\n"
      "  onetap freeze runs/sanet --checkpoint best --dtype f16 -o small.tap\n"
      "  onetap freeze runs/sanet --checkpoint 3910 --recalibrate 5000 -o early.tap\n"
      "  onetap freeze runs/sanet --density 0.8 --recalibrate 5000 -o smaller.tap\n"
      "  onetap freeze model.tap --drop-below 0.001 --data cifar10:DIR -o smaller.tap\n"
      "\nStages: soft and hard (the trained network, by LibTorch); folded (the frozen network in memory), dropped (the "
      "same\n"
      "without dropped weights) and file (read back from the file), by the runtime. If outputs differ by more than "
      "rounding\n"
      "after 'hard' (or 'recalibrated'), the exit code is 3 and no file is left. The cost of --drop-below and "
      "--density is\n"
      "shown but not checked. A dense run can be frozen too. The checks compare outputs on the test images (all, or\n"
      "--images). If hard accuracy is 1 point or more below soft accuracy, or the run is unfinished, there is a "
      "warning.");
  verb->callback([options, &action] { action = [options] { return run_freeze(*options); }; });
}

}  // namespace onetap::tool
