// onetap import: somebody's ONNX model as a network to train, or as a frozen one.
#include "onetap/onnx/import.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/per_colour.h"
#include "onetap/base/text.h"
#include "onetap/graph/text.h"
#include "onetap/tap/sparse_to_taps.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/verbs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace onetap::tool {
namespace {

namespace fs = std::filesystem;

struct ImportArguments {
  std::string model, out, weights, shape, mean, sd;
  bool tap = false;
};

PerColour three_numbers(const std::string& text, const char* flag, bool above_zero) {
  const auto numbers = parse_per_colour(text);
  if (!numbers || (above_zero && *std::min_element(numbers->begin(), numbers->end()) <= 0)) {
    fail_usage("[import] expected three numbers R,G,B{} for {}, got '{}'", above_zero ? " above 0" : "", flag, text);
  }
  return *numbers;
}

// What a pixel becomes: as the model says, or as the flags do.
struct GivenPixels {
  std::optional<PerColour> mean, sd;

  explicit GivenPixels(const ImportArguments& options) {
    if (!options.mean.empty()) mean = three_numbers(options.mean, "--mean", false);
    if (!options.sd.empty()) sd = three_numbers(options.sd, "--sd", true);
  }

  // Nothing if neither knows; what only one of mean and sd leaves open is 0 or 1.
  std::optional<PixelScale> over(std::optional<PixelScale> known) const {
    if (!known && !mean && !sd) return std::nullopt;
    PixelScale pixels = known.value_or(PixelScale{});
    if (mean) pixels.mean = *mean;
    if (sd) pixels.sd = *sd;
    return pixels;
  }
};

Shape image_shape(const std::string& text) {
  Shape shape;
  for (const std::string_view side : split(text, 'x')) shape.push_back(parse_int(side).value_or(0));
  const bool is_good = std::all_of(shape.begin(), shape.end(), [](int64_t side) { return side > 0; });
  if (!is_good || (shape.size() != 1 && shape.size() != 3)) {
    fail_usage("[import] expected --shape CxHxW, such as 3x32x32, got '{}'", text);
  }
  return shape;
}

// Where the files go: -o names the network's file, or both files without their ends.
struct Places {
  fs::path net, weights;
};

Places places_of(const ImportArguments& options) {
  const std::string out = options.out.empty() ? fs::path(options.model).stem().string() : options.out;
  const std::string end = fs::path(out).extension().string();
  const bool has_end = end == ".net" || end == ".txt";
  const std::string stem = has_end ? out.substr(0, out.size() - end.size()) : out;
  return {has_end ? out : out + ".net", options.weights.empty() ? stem + ".safetensors" : options.weights};
}

void check_places(const Places& places, const fs::path& model) {
  if (places.net == places.weights) fail_usage("[import] expected two files, got '{}' twice", places.net.string());
  for (const fs::path& path : {places.net, places.weights}) check_output_file("import", model, path);
}

fs::path tap_place(const ImportArguments& options) {
  fs::path out = options.out.empty() ? fs::path(options.model).stem().concat(".tap") : fs::path(options.out);
  if (!out.has_extension()) out += ".tap";
  return out;
}

void import_tap(const ImportArguments& options, const ImportOptions& import_options) {
  const fs::path out = tap_place(options);
  const GivenPixels pixels(options);
  check_output_file("import", options.model, out);
  const ImportedNet imported = import_onnx(options.model, import_options);
  for (const std::string& note : imported.notes) console().note(note);
  TapNet net = naming_file(options.model, [&] { return frozen_net(imported); });
  net.facts["imported"] = fs::path(options.model).filename().string();
  const auto scale = pixels.over(naming_file(options.model, [&] { return known_pixels(imported); }));
  if (scale) net.pixels = *scale;
  naming_file(options.model, [&] { check_tap_net(net); });
  // The reader of quantised models has done so where the model does not say it.
  if (const auto taps = net.is_int8() ? std::vector<ConvertedConv>() : sparse_to_taps(net); !taps.empty()) {
    console().note(fmt::format("{} convolutions are mostly zeros and became tap convolutions, such as '{}'",
                               taps.size(), taps.front().name));
  }
  if (!scale) {
    console().note("pixels are scaled to 0..1: give --mean and --sd if the network was trained with other pixels");
  }
  write_tap(out, net);
  console().print(out.string());
}

int run_import(const ImportArguments& options) {
  if (options.tap && !options.weights.empty()) fail_usage("[import] expected --tap or --weights, got both");
  ImportOptions import_options;
  if (!options.shape.empty()) import_options.shape = image_shape(options.shape);
  if (options.tap) {
    import_tap(options, import_options);
    return 0;
  }
  const Places places = places_of(options);
  const GivenPixels pixels(options);
  check_places(places, options.model);
  const ImportedNet imported = trainable_net(import_onnx(options.model, import_options));
  const auto scale = pixels.over(naming_file(options.model, [&] { return known_pixels(imported); }));
  const std::string net = network_text(imported.graph), weights = tensor_file(imported, scale);
  write_files_atomic({{places.net, net}, {places.weights, weights}});
  for (const std::string& note : imported.notes) console().note(note);
  if (!scale) {
    console().note(
        "training scales pixels by the mean and sd of its data: give --mean and --sd if the network was trained with "
        "others");
  }
  console().print(places.net.string());
  console().print(places.weights.string());
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<ImportArguments>();
  CLI::App* verb = app.add_subcommand("import", "read a network from an ONNX model: to train, or as a .tap file");
  verb->add_option("MODEL", options->model, "an ONNX model of a classification network")->required();
  verb->add_option("-o,--out", options->out, "write NAME.net and NAME.safetensors, or with --tap NAME.tap")
      ->check(some_name())
      ->option_text("NAME");
  verb->add_option("--weights", options->weights, "the file for the weights")->check(some_name())->option_text("FILE");
  verb->add_flag("--tap", options->tap,
                 "write a frozen network: batch norms folded, kernels that are mostly zeros as taps");
  verb->add_option("--shape", options->shape, "shape of an image, if the model does not define it")
      ->option_text("CxHxW");
  verb->add_option("--mean", options->mean,
                   "mean of the pixels (0 to 1) in the training of the model (default: the model's own)")
      ->option_text("R,G,B");
  verb->add_option("--sd", options->sd, "standard deviation of the pixels in that training")->option_text("R,G,B");
  verb->footer(
      "Examples:\n"
      "  onetap import model.onnx -o mine --mean 0.4914,0.4822,0.4465 --sd 0.2023,0.1994,0.2010\n"
      "  onetap train --arch mine.net --init mine.safetensors --method sal --data cifar10 --out runs/mine\n"
      "  onetap import model.onnx --tap -o mine.tap --mean 0.485,0.456,0.406 --sd 0.229,0.224,0.225\n"
      "  onetap run mine.tap cat.jpg\n"
      "\nReads what PyTorch's exporters write of classification networks, opset 9 to 20; docs/onnx.md lists the "
      "operators.\n"
      "Anything else is an error that names the operator, and nothing is written. Names of layers are kept.");
  verb->callback([options, &action] { action = [options] { return run_import(*options); }; });
}

}  // namespace onetap::tool
