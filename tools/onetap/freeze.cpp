// onetap freeze: a run to a .tap file, every stage checked on the test set.
#include "onetap/freeze/freeze.h"

#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "onetap/batches/recalibrate.h"
#include "onetap/count/count.h"
#include "onetap/freeze/verify.h"
#include "onetap/graph/method.h"
#include "onetap/journal/run_files.h"
#include "onetap/runtime/model.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/open_run.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

struct FreezeArguments {
  RunArguments run;
  std::string out;
  WeightType type = WeightType::kF32;
  int64_t recalibrate = 0;  // training images
  int64_t memory_limit = 0;
  bool json = false;
};

struct Sizes {
  uint64_t checkpoint = 0;  // the trained tensors, attention included
  uint64_t dense = 0;       // the same network dense, in 32-bit floats
  uint64_t file = 0;
};

TapNet frozen_net(const FreezeArguments& options, const OpenRun& run) {
  TapNet net = freeze(run.module, options.type);
  net.pixels = {run.source->normalisation.mean, run.source->normalisation.sd};
  net.classes = run.source->classes;
  net.facts = {{"onetap", ONETAP_VERSION},
               {"step", std::to_string(run.checkpoint.state.step)},
               {"method", method_summary(run.graph)}};
  return net;
}

VerifyOptions verify_options(const FreezeArguments& options, const OpenRun& run) {
  VerifyOptions verify;
  verify.stream = run.test_stream();
  verify.threads = options.run.thread_count();
  verify.memory_limit = options.memory_limit;
  verify.stream.images = run.source->test->first(options.run.images);
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
  };
  return recalibrate(run.module, *run.source->train, recalibration);
}

void print_freeze_json(const fs::path& out, const std::vector<Stage>& stages, const Sizes& sizes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Stage& stage : stages) {
    list.push_back({{"stage", stage.name},
                    {"images", stage.predictions.images()},
                    {"accuracy", stage.predictions.accuracy()},
                    {"loss", stage.predictions.loss()},
                    {"largest_difference", stage.from_before.largest},
                    {"relative_difference", stage.from_before.relative()}});
  }
  const nlohmann::ordered_json object = {{"file", out.string()},
                                         {"stages", list},
                                         {"checkpoint_bytes", sizes.checkpoint},
                                         {"dense_bytes", sizes.dense},
                                         {"file_bytes", sizes.file}};
  std::cout << json_text(object, 2) << '\n';
}

void print_freeze_table(const fs::path& out, const std::vector<Stage>& stages, const Sizes& sizes) {
  using A = Table::Align;
  Table table({{"stage"},
               {"images", A::kRight},
               {"accuracy", A::kRight},
               {"loss", A::kRight},
               {"largest difference to the stage before", A::kRight}});
  for (const Stage& stage : stages) {
    const bool first = &stage == &stages.front();
    table.add({stage.name, with_thousands(static_cast<double>(stage.predictions.images())),
               percent_text(stage.predictions.accuracy()), fmt::format("{:.4f}", stage.predictions.loss()),
               first ? "" : fmt::format("{:.3g} of {:.3g}", stage.from_before.largest, stage.from_before.scale)});
  }
  const auto bytes = [](uint64_t count) { return with_thousands(static_cast<double>(count)); };
  std::cout << table.text() << '\n';
  // A toy's header outweighs its weights.
  const double ratio = static_cast<double>(sizes.dense) / static_cast<double>(sizes.file);
  console().print(fmt::format("checkpoint {} bytes, dense network {} bytes, {} {} bytes{}", bytes(sizes.checkpoint),
                              bytes(sizes.dense), out.string(), bytes(sizes.file),
                              ratio > 1 ? fmt::format(" ({:.1f}x smaller than dense)", ratio) : ""));
}

Sizes measure(const OpenRun& run, const fs::path& out) {
  Graph dense = run.graph;
  apply_method(dense, Method{}, "");
  Sizes sizes;
  sizes.checkpoint = fs::file_size(run.checkpoint.path / "model.safetensors");
  sizes.dense = static_cast<uint64_t>(4 * count_network(dense, CountRules::kPlain).params);
  sizes.file = fs::file_size(out);
  return sizes;
}

int run_freeze(const FreezeArguments& options) {
  OpenedData opened;
  OpenRun run = open_run(options.run, opened);
  const fs::path out = options.out.empty() ? RunFiles(options.run.run).model() : fs::path(options.out);
  // Into place only once it has passed: a file that is there has been checked.
  fs::path aside = out;
  aside += ".unchecked";
  struct Remove {
    const fs::path& path;
    ~Remove() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  } remove{aside};
  TapNet net = frozen_net(options, run);
  // At once: a place that cannot be written to, or a network too large to be checked, is known before the long part.
  write_tap(aside, net);
  check_memory(net, options);
  StageCheck check(*run.source->test, verify_options(options, run));
  check.trained(run.module);
  if (options.recalibrate > 0) {
    const int64_t images = recalibrate_run(options, run);
    check.recalibrated(run.module);
    net = frozen_net(options, run);
    net.facts["recalibrated"] = fmt::format("{} images", images);
    write_tap(aside, net);
  }
  check.frozen("folded", net);
  check.frozen("file", read_tap(aside));
  console().clear_progress();
  check_stages(check.stages(), options.type);
  put_in_place(aside, out);
  const Sizes sizes = measure(run, out);
  options.json ? print_freeze_json(out, check.stages(), sizes) : print_freeze_table(out, check.stages(), sizes);
  return 0;
}

}  // namespace

void add_freeze(CLI::App& app, Action& action) {
  auto options = std::make_shared<FreezeArguments>();
  CLI::App* verb = app.add_subcommand("freeze", "a run to a .tap file: one tap per slice, batch norm folded, checked");
  // The stages are compared to the last digits; a GPU convolves with fewer (TF32).
  options->run.add(*verb, RunArguments::Where::kCpu);
  verb->add_option("-o,--out", options->out, "the file to write (default: RUN/model.tap)")->option_text("FILE");
  const std::map<std::string, WeightType> types = {{"f32", WeightType::kF32}, {"f16", WeightType::kF16}};
  verb->add_option("--dtype", options->type, "weights in the file: 32-bit or 16-bit floats")
      ->transform(CLI::Transformer(types))
      ->option_text("f32|f16 [f32]");
  verb->add_option("--recalibrate", options->recalibrate,
                   "take batch norm's statistics anew from N training images, with the kept taps alone")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N");
  add_memory_option(*verb, options->memory_limit);
  verb->add_flag("--json", options->json, "for programs");
  verb->footer(
      "Examples:\n"
      "  onetap freeze runs/sanet -o model.tap\n"
      "  onetap freeze runs/sanet --checkpoint best --dtype f16 -o small.tap\n"
      "  onetap freeze runs/sanet --checkpoint 3910 --recalibrate 5000 -o early.tap\n"
      "\nStages: soft and hard, the trained network by LibTorch; folded, the frozen network in memory, and file, the\n"
      "same read back, both by the runtime. Outputs that differ by more than rounding after 'hard'\n"
      "(or 'recalibrated') end with exit code 3, and no file is left. A dense run freezes too.");
  verb->callback([options, &action] { action = [options] { return run_freeze(*options); }; });
}

}  // namespace onetap::tool
