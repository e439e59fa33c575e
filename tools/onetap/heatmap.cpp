// onetap heatmap: which positions of the kernels a run keeps, as a picture or a table.
#include "onetap/report/heatmap.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/data/image_codec.h"
#include "onetap/graph/method.h"
#include "onetap/journal/good_lines.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

namespace onetap::tool {
namespace {

namespace fs = std::filesystem;

struct HeatmapArguments {
  std::string source;
  std::string output;
  std::string what = "kept";
  std::optional<int64_t> epoch;
  bool all = false;
  bool dark = false;
  bool json = false;

  bool mean_p() const { return what == "mean-p"; }
};

// Shares of every layer, and what to write over them.
struct HeatmapInput {
  std::string network;
  std::optional<int64_t> epoch;
  std::vector<PositionShares> layers;

  std::string title() const { return epoch ? fmt::format("{} after epoch {}", network, *epoch) : network; }
};

// "1..12".
std::string epoch_range(const std::vector<AttentionLine>& lines) {
  const auto [first, last] = std::minmax_element(
      lines.begin(), lines.end(), [](const AttentionLine& a, const AttentionLine& b) { return a.epoch < b.epoch; });
  return fmt::format("{}..{}", first->epoch, last->epoch);
}

const AttentionLine& choose_line(const std::vector<AttentionLine>& lines, const HeatmapArguments& arguments,
                                 const fs::path& file) {
  if (!arguments.epoch) return lines.back();
  // The last of its kind: a run that was resumed in a hurry may have written an epoch twice.
  const auto found = std::find_if(lines.rbegin(), lines.rend(),
                                  [&](const AttentionLine& line) { return line.epoch == *arguments.epoch; });
  if (found == lines.rend()) {
    fail_usage("[heatmap] expected --epoch among the {} tested epochs in {}, got {} ({})", lines.size(),
               epoch_range(lines), *arguments.epoch, file.string());
  }
  return *found;
}

std::string kind_of(const Graph& graph) {
  const std::string summary = method_summary(graph);
  return summary == "dense" ? "a dense network" : summary;
}

// Fixed shifts are in the network itself, the same from the first step on.
HeatmapInput shifts_of(const HeatmapArguments& arguments, const Graph& graph) {
  HeatmapInput input{graph.name(), std::nullopt, shifted_shares(graph)};
  if (input.layers.empty()) {
    fail_data("[heatmap] expected a run with layers that keep taps, got {} ({})", kind_of(graph), arguments.source);
  }
  if (arguments.mean_p() || arguments.epoch) {
    fail_usage("[heatmap] expected --what mean-p and --epoch for layers that learn their taps, got fixed shifts ({})",
               arguments.source);
  }
  return input;
}

HeatmapInput read_run(const HeatmapArguments& arguments) {
  const RunFiles files(arguments.source);
  const Graph graph = files.read_graph();
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.is_pruned(); })) {
    return shifts_of(arguments, graph);
  }
  std::vector<std::string> notices;
  const auto lines = read_good_lines<AttentionLine>(files.attention(), notices);
  if (lines.empty() && !notices.empty()) {
    fail_data("[heatmap] expected the attention of a tested epoch, got no readable line: {}", notices.front());
  }
  for (const std::string& notice : notices) console().warn(notice);
  if (lines.empty()) {
    fail_data("[heatmap] expected the attention of a tested epoch, got none yet ({})", files.attention().string());
  }
  const AttentionLine& line = choose_line(lines, arguments, files.attention());
  if (line.layers.empty()) {
    fail_data("[heatmap] expected layers that keep taps, got none in epoch {} ({})", line.epoch,
              files.attention().string());
  }
  return {graph.name(), line.epoch, arguments.mean_p() ? mean_attention(line) : kept_shares(line)};
}

HeatmapInput read_frozen(const HeatmapArguments& arguments) {
  if (arguments.mean_p() || arguments.epoch) {
    fail_usage("[heatmap] a frozen network has only kept taps: --what mean-p and --epoch need a run ({})",
               arguments.source);
  }
  const TapNet net = read_tap(frozen_file(arguments.source, "heatmap"));
  HeatmapInput input{net.graph.name(), std::nullopt, kept_shares(net)};
  if (input.layers.empty()) {
    fail_data("[heatmap] expected tap convolutions, got {} ({})", kind_of(net.graph), arguments.source);
  }
  return input;
}

// Every kind of source has its reader.
HeatmapInput read_shares(const HeatmapArguments& arguments) {
  std::error_code ignored;
  if (fs::is_regular_file(arguments.source, ignored) || names_tap(arguments.source)) return read_frozen(arguments);
  // A run's own record has the epochs, and its attention; without one (a copy of the model alone) there are the taps.
  if (holds_frozen(arguments.source) && !fs::exists(RunFiles(arguments.source).attention(), ignored)) {
    return read_frozen(arguments);
  }
  return read_run(arguments);
}

enum class Format { kSvg, kPng, kCsv };

Format output_format(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".svg") return Format::kSvg;
  if (extension == ".png") return Format::kPng;
  if (extension == ".csv") return Format::kCsv;
  fail_usage("[heatmap] expected an output ending in .svg, .png or .csv, got '{}'", path);
}

std::string render(Format format, const std::vector<PositionShares>& layers, const HeatmapOptions& options) {
  if (format == Format::kCsv) return heatmap_csv(layers);
  if (format == Format::kSvg) return heatmap_svg(layers, options);
  Raster raster = heatmap_raster(layers, options);
  return encode_png({3, raster.height, raster.width, std::move(raster.pixels)});
}

void print_heatmap_json(const HeatmapArguments& arguments, const HeatmapInput& input,
                        const std::vector<PositionShares>& layers) {
  auto list = nlohmann::ordered_json::array();
  for (const PositionShares& layer : layers) {
    nlohmann::ordered_json item = {{"layer", layer.layer}, {"kernel", {layer.kernel_h, layer.kernel_w}}};
    if (!layer.kept.empty()) item["kept"] = layer.kept;
    item["share"] = layer.share;
    if (layer.none > 0) item["none"] = layer.none;
    list.push_back(std::move(item));
  }
  nlohmann::ordered_json object = {{"source", arguments.source}, {"network", input.network}};
  if (input.epoch) object["epoch"] = *input.epoch;
  object["what"] = arguments.what;
  if (!arguments.output.empty()) object["output"] = arguments.output;
  object["layers"] = std::move(list);
  std::cout << json_text(object, 2) << '\n';
}

int run_heatmap(const HeatmapArguments& arguments) {
  const Format format = arguments.output.empty() ? Format::kCsv : output_format(arguments.output);
  if (!arguments.output.empty()) check_output_file("heatmap", arguments.source, arguments.output);
  const HeatmapInput input = read_shares(arguments);
  const auto layers = choose_layers(input.layers, arguments.all ? HeatmapLayers::kAll : HeatmapLayers::kEnds);
  HeatmapOptions options;
  options.title = input.title();
  if (layers.size() < input.layers.size()) {
    options.title += fmt::format(", {} of {} layers", layers.size(), input.layers.size());
  }
  options.what = arguments.mean_p() ? "mean attention" : "kept taps";
  options.dark = arguments.dark;
  if (!arguments.output.empty()) write_file_atomic(arguments.output, render(format, layers, options));
  if (arguments.json) {
    print_heatmap_json(arguments, input, layers);
  } else if (arguments.output.empty()) {
    std::cout << heatmap_csv(layers);
  } else {
    console().print(arguments.output);
  }
  return 0;
}

}  // namespace

void add_heatmap(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<HeatmapArguments>();
  CLI::App* verb = app.add_subcommand("heatmap", "draw which positions of the kernels are kept");
  verb->add_option("SOURCE", arguments->source, "a run directory or a .tap file")->required();
  verb->add_option("-o,--out", arguments->output, "heat.svg, heat.png or heat.csv (default: CSV on stdout)")
      ->check(some_name())
      ->option_text("FILE");
  verb->add_flag("--all", arguments->all, "every layer (default: the first four and the last four)");
  verb->add_option("--what", arguments->what, "fraction of kept taps, or the mean of the attention P")
      ->check(CLI::IsMember({"kept", "mean-p"}))
      ->option_text("kept|mean-p [kept]");
  verb->add_option("--epoch", arguments->epoch, "after this many epochs (default: the last tested one)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->option_text("N");
  verb->add_flag("--dark", arguments->dark, "colours for a dark page");
  verb->add_flag("--json", arguments->json, "print the fractions as JSON");
  verb->footer(
      "Examples:\n"
      "  onetap heatmap runs/sanet -o heat.svg\n"
      "  onetap heatmap runs/sanet -o heat.png --all --dark\n"
      "  onetap heatmap model.tap -o heat.svg\n"
      "  onetap heatmap runs/sanet --what mean-p --epoch 10 > heat.csv\n"
      "\nOne grid per layer, one cell per position of its kernel; offsets count from the centre. All maps of a\n"
      "picture share one colour scale. 'none' is the fraction of taps that freeze dropped.");
  verb->callback([arguments, &action] { action = [arguments] { return run_heatmap(*arguments); }; });
}

}  // namespace onetap::tool
