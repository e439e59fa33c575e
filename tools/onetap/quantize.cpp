// onetap quantize: a frozen network of floats to one of int8.
#include "onetap/quant/quantize.h"

#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/data/score.h"
#include "onetap/graph/op.h"
#include "onetap/runtime/calibrate.h"
#include "onetap/runtime/layer_errors.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"
#include "tools/onetap/calibration_images.h"
#include "tools/onetap/classify.h"
#include "tools/onetap/console.h"
#include "tools/onetap/executor.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

constexpr int64_t kImagesOfLayers = 16;  // that errors of layers are measured on

struct QuantizeArguments {
  std::string source, data, out;
  int64_t images = kCalibrationImages;
  int64_t test_images = 0;  // 0: all
  int64_t threads = 0;
  int64_t memory_limit = 0;
  QuantizeOptions options;
  std::vector<std::string> kept;
  bool calibrates = false;  // asked for, whatever ranges the network has of its training
  bool layers = false;
  bool json = false;
};

// The network before and after, on the same test images.
struct Stage {
  const char* name;
  std::string weights;
  Predictions said;
  uint64_t bytes = 0;
};

struct QuantizeReport {
  std::vector<Stage> stages;
  std::vector<LayerError> layers;
  int64_t images = 0;  // of the calibration; 0: ranges of training

  double lost() const { return stages[0].said.accuracy() - stages[1].said.accuracy(); }
};

class Quantization {
 public:
  explicit Quantization(const QuantizeArguments& arguments) : arguments_(arguments) {}

  void run() {
    file_ = frozen_file(arguments_.source, "quantize").string();
    if (!names_tap(file_)) fail_data("[quantize] expected a .tap file, got {}", file_);
    check_output_file("quantize", file_, arguments_.out);
    const TapNet net = read_tap(file_);
    QuantizeOptions options = arguments_.options;
    options.kept.insert(arguments_.kept.begin(), arguments_.kept.end());
    naming_file(file_, [&] { check_quantizable(net, options); });
    OpenedData opened;
    source_ = opened.open(arguments_.data);
    naming_file(file_, [&] {
      net.graph.check_classifier(static_cast<int64_t>(source_->classes.size()));
      score_.view = network_view(net.graph, net.pixels, "quantize");
    });
    score_.threads = arguments_.threads > 0 ? arguments_.threads : available_cpus();
    const SpreadDataset images = calibration_images(*source_, arguments_.data, arguments_.images, "quantize");
    add_stage("before", net, fs::file_size(file_));
    TapNet made = naming_file(file_, [&] { return quantize_net(net, calibrate(net, images), options); });
    add_stage("after", parse_tap(tap_bytes(made), arguments_.out), 0);  // as whoever reads it will
    const Predictions& said = report_.stages.back().said;
    const std::string kind = parse_data_spec(arguments_.data).kind;
    set_test_fact(made, {said.accuracy(), said.images(), kind});
    set_before_fact(made, {report_.stages.front().said.accuracy(), said.images(), kind});
    report_.stages.back().bytes = tap_bytes(made).size();
    if (arguments_.layers) measure_layers(net, made);
    write_tap(arguments_.out, made);
    console().clear_progress();
    opened.warn_of_unreadable();
    arguments_.json ? print_json() : print_tables();
  }

 private:
  // Images of a set through a function, on all threads, with the progress line.
  Predictions visit(const Dataset& images, int64_t count, const char* what,
                    const std::function<std::vector<float>(const float*)>& function) {
    ScoreOptions score = score_;
    score.images = count;
    if (console().shows_progress()) {
      score.progress = [&](int64_t done) {
        console().progress(fmt::format("{}: {} {}/{}", file_, what, done, images.first(count)));
      };
    }
    return score_classifier(images, score, function);
  }

  Calibration calibrate(const TapNet& net, const SpreadDataset& images) {
    if (!net.value_ranges.empty() && !arguments_.calibrates) return recorded_calibration(net);
    Calibrator calibrator(net, arguments_.memory_limit);
    visit(images, 0, "calibrating", [&](const float* image) { return calibrator.run(image); });
    report_.images = calibrator.calibration().images;
    return calibrator.calibration();
  }

  void add_stage(const char* name, const TapNet& net, uint64_t bytes) {
    const auto executor = naming_file(file_, [&] { return make_executor(net, {false, arguments_.memory_limit}); });
    Predictions said = visit(*source_->test, arguments_.test_images, "testing", executor);
    said.check_finite("quantize", file_);
    report_.stages.push_back({name, weight_type_name(net), std::move(said), bytes});
  }

  void measure_layers(const TapNet& net, const TapNet& made) {
    const SpreadDataset images(source_->train, std::min(kImagesOfLayers, arguments_.images));
    LayerErrors errors(net, made, arguments_.memory_limit);
    const std::vector<float> none(source_->classes.size(), 0.0f);
    visit(images, 0, "measuring layers", [&](const float* image) {
      errors.add(image);
      return none;
    });
    report_.layers = errors.errors();
  }

  void print_json() const {
    auto stages = nlohmann::ordered_json::array();
    for (const Stage& stage : report_.stages) {
      stages.push_back({{"stage", stage.name},
                        {"weights", stage.weights},
                        {"images", stage.said.images()},
                        {"accuracy", stage.said.accuracy()},
                        {"loss", stage.said.loss()},
                        {"bytes", stage.bytes}});
    }
    nlohmann::ordered_json object = {{"file", arguments_.out},
                                     {"stages", std::move(stages)},
                                     {"accuracy_lost", report_.lost()},
                                     {"calibration_images", report_.images}};
    if (arguments_.layers) {
      auto layers = nlohmann::ordered_json::array();
      for (const LayerError& layer : report_.layers) {
        layers.push_back({{"name", layer.node->name},
                          {"op", op_info(layer.node->op).name},
                          {"error", layer.alone},
                          {"error_so_far", layer.so_far}});
      }
      object["layers"] = std::move(layers);
    }
    std::cout << json_text(object, 2) << '\n';
  }

  void print_tables() const {
    using A = Table::Align;
    if (arguments_.layers) {
      Table table({{"layer"}, {"op"}, {"error", A::kRight}, {"error so far", A::kRight}});
      for (const LayerError& layer : report_.layers) {
        table.add(
            {layer.node->name, op_info(layer.node->op).name, percent_text(layer.alone), percent_text(layer.so_far)});
      }
      std::cout << table.text() << '\n';
    }
    Table table({{"network"}, {"weights"}, {"accuracy", A::kRight}, {"loss", A::kRight}, {"bytes", A::kRight}});
    for (const Stage& stage : report_.stages) {
      table.add({stage.name, stage.weights, percent_text(stage.said.accuracy()),
                 fmt::format("{:.4f}", stage.said.loss()), with_thousands(static_cast<double>(stage.bytes))});
    }
    std::cout << table.text();
    console().note(fmt::format(
        "{}: {} points of accuracy {}, {:.1f}x smaller; {}, {} images to test", arguments_.out,
        fmt::format("{:.2f}", std::abs(report_.lost()) * 100), report_.lost() < 0 ? "gained" : "lost",
        static_cast<double>(report_.stages[0].bytes) / static_cast<double>(report_.stages[1].bytes),
        report_.images > 0 ? fmt::format("{} images to calibrate", report_.images) : "ranges of its training",
        report_.stages[1].said.images()));
  }

  const QuantizeArguments& arguments_;
  std::string file_;  // the .tap file that was meant
  std::shared_ptr<const DataSource> source_;
  ScoreOptions score_;
  QuantizeReport report_;
};

int run_quantize(const QuantizeArguments& arguments) {
  Quantization(arguments).run();
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<QuantizeArguments>();
  CLI::App* verb =
      app.add_subcommand("quantize", "convert a frozen network to int8: a quarter of the bytes, and faster");
  verb->add_option("MODEL", arguments->source, "a .tap file of floats, or a run directory with model.tap")->required();
  verb->add_option(
          "--data", arguments->data,
          "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR: training images to calibrate with, test images "
          "to compare on")
      ->required()
      ->check(offered(data_words()))
      ->option_text("TEXT");
  verb->add_option("-o,--out", arguments->out, "the .tap file to write")->required()->option_text("FILE");
  auto* images =
      verb->add_option("--images", arguments->images, "training images to calibrate with, spread over all of them");
  images->check(CLI::Range(1, 1 << 30))->option_text("N [512]");
  const std::map<std::string, CalibrationMethod> methods = {{"minmax", CalibrationMethod::kMinMax},
                                                            {"percentile", CalibrationMethod::kPercentile},
                                                            {"mse", CalibrationMethod::kMse}};
  auto* method = verb->add_option("--calibration", arguments->options.method,
                                  "the largest number that a byte stands for: the largest seen (minmax), one that few "
                                  "exceed (percentile) or the one with the least squared error (mse)");
  method->transform(CLI::Transformer(methods))->option_text("minmax|percentile|mse [minmax]");
  auto* percentile = verb->add_option("--percentile", arguments->options.percentile,
                                      "fraction of the numbers below it, in percent (means --calibration percentile)");
  percentile->check(number_from(50, 100))->option_text("X [99.99]");
  verb->add_option("--keep", arguments->kept, "a layer that stays in floats; may be given several times")
      ->option_text("LAYER");
  verb->add_option("--test-images", arguments->test_images, "use only the first N test images (default: all)")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N");
  verb->add_flag("--layers", arguments->layers, "print the error of every layer");
  verb->add_option("--threads", arguments->threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  add_memory_option(*verb, arguments->memory_limit);
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap quantize model.tap --data cifar10:DIR -o model-int8.tap\n"
      "  onetap quantize model.tap --data cifar10:DIR -o model-int8.tap --keep conv1 --keep fc --layers\n"
      "  onetap quantize runs/sanet --data cifar10:DIR -o model-int8.tap          (runs/sanet/model.tap)\n"
      "\nA network that was trained for int8 ('onetap train --quantize int8') records the ranges of its values: they "
      "are used\n"
      "unless --images or --calibration is given.\n"
      "\nErrors of layers are root mean squares, in percent of the values in floats, on 16 training images: of the\n"
      "layer alone, given exact inputs, and with all layers before it in int8.");
  verb->callback([arguments, images, method, percentile, &action] {
    arguments->calibrates = images->count() + method->count() + percentile->count() > 0;
    const bool has_percentile = percentile->count() > 0;
    if (has_percentile && method->count() == 0) arguments->options.method = CalibrationMethod::kPercentile;
    action = [arguments, has_percentile] {
      if (has_percentile && arguments->options.method != CalibrationMethod::kPercentile) {
        fail_usage("[quantize] --percentile is a flag of --calibration percentile, got --calibration {}",
                   arguments->options.method == CalibrationMethod::kMse ? "mse" : "minmax");
      }
      return run_quantize(*arguments);
    };
  });
}

}  // namespace onetap::tool
