// onetap count: what a network, a run or a frozen file costs.
#include "onetap/count/count.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/count/memory.h"
#include "onetap/graph/method.h"
#include "onetap/graph/op.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/frozen_count.h"
#include "tools/onetap/network_argument.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

struct CountArguments {
  NetworkArgument network;
  CountRules rules = CountRules::kPaper;
  ShortcutRule shortcuts = ShortcutRule::kAuto;
  bool json = false;
  bool csv = false;
};

// What was asked about, and the bytes of a file that holds it.
struct Counted {
  Graph graph;
  NetworkCount count;
  std::string type = "f32";            // of the weights
  std::vector<uint64_t> node_bytes;    // of a .tap: of the nodes' tensors there
  std::optional<uint64_t> file_bytes;  // of a .tap, as it lies there
  uint64_t tap_bytes = 0;              // a .tap of it in 32-bit floats

  bool is_int8() const { return type == "int8"; }

  // Batch norms are folded, pruned weights gone: a .tap, or the text of such a network.
  bool is_frozen() const {
    const auto& nodes = graph.nodes();
    return file_bytes || std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
             return node.op == Op::kTapConv || node.op == Op::kAffine;
           });
  }
};

Counted open_target(const CountArguments& options) {
  const fs::path path = options.network.name;
  const bool is_run = RunFiles(path).holds_run(), is_tap = names_tap(path);
  if ((is_run || is_tap) && options.network.has_flags()) {
    fail_usage("[count] {} is {}: its network is fixed, and flags that define a network do not apply", path.string(),
               is_run ? "a run" : "a frozen network");
  }
  Counted counted;
  const CountOptions rules{options.rules, options.shortcuts};
  if (is_tap) {
    const TapNet net = read_tap(path);
    counted.graph = net.graph;
    counted.count = count_frozen(net, rules);
    counted.type = weight_type_name(net);
    counted.node_bytes = stored_bytes(net);
    counted.file_bytes = fs::file_size(path);
  } else {
    counted.graph = is_run ? RunFiles(path).read_graph() : options.network.build();
    counted.count = count_network(counted.graph, rules);
  }
  counted.tap_bytes = tap_length(frozen_form(counted.graph).graph, WeightType::kF32);
  return counted;
}

// As a .tap holds them; of others, the words that were counted.
double layer_bytes(const Counted& counted, const NetworkCount& count, size_t at) {
  return counted.node_bytes.empty() ? sizeof(float) * count.layers[at].params
                                    : static_cast<double>(counted.node_bytes[at]);
}

double all_bytes(const Counted& counted, const NetworkCount& count) {
  double bytes = 0;
  for (size_t i = 0; i < count.layers.size(); ++i) bytes += layer_bytes(counted, count, i);
  return bytes;
}

// Values are bytes in an int8 network, floats in all others.
int64_t peak_bytes(const Counted& counted) {
  const auto value_bytes = static_cast<int64_t>(counted.is_int8() ? sizeof(int8_t) : sizeof(float));
  return peak_activations(frozen_form(counted.graph).graph) * value_bytes;
}

void print_count_json(const CountArguments& options, const Counted& counted, const NetworkCount& count) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = counted.graph.nodes()[i];
    const LayerCount& layer = count.layers[i];
    layers.push_back({{"name", node.name},
                      {"op", op_info(node.op).name},
                      {"shape", node.shape},
                      {"method", method_text(node)},
                      {"params", layer.params},
                      {"bytes", layer_bytes(counted, count, i)},
                      {"macs", layer.macs},
                      {"activations", layer.activations}});
    if (node.is_pruned()) layers.back()["empty"] = layer.empty;
  }
  nlohmann::ordered_json object = {{"name", counted.graph.name()},
                                   {"rules", options.rules == CountRules::kPaper ? "paper" : "plain"},
                                   {"type", counted.type},
                                   {"bytes", all_bytes(counted, count)},
                                   {"params", count.params},
                                   {"macs", count.macs},
                                   {"activations", count.activations},
                                   {"peak_activation_bytes", peak_bytes(counted)},
                                   {"tap_bytes", counted.tap_bytes},
                                   {"frozen", counted.is_frozen()}};
  if (count.empty > 0) object["empty"] = count.empty;
  if (counted.file_bytes) object["file_bytes"] = *counted.file_bytes;
  object["layers"] = std::move(layers);
  std::cout << json_text(object, 2) << '\n';
}

void print_count_csv(const Counted& counted, const NetworkCount& count) {
  std::cout << "layer,op,output,method,params,macs,activations,empty,bytes\n";
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = counted.graph.nodes()[i];
    const LayerCount& layer = count.layers[i];
    std::cout << fmt::format("{},{},{},{},{},{:.0f},{:.0f},{},{}\n", csv_field(node.name), op_info(node.op).name,
                             shape_text(node.shape), csv_field(method_text(node)), layer.params, layer.macs,
                             layer.activations, node.is_pruned() ? fmt::format("{:.6g}", layer.empty) : "",
                             layer_bytes(counted, count, i));
  }
  std::cout << fmt::format("total,,,,{},{:.0f},{:.0f},{:.6g},{}\n", count.params, count.macs, count.activations,
                           count.empty, all_bytes(counted, count));
}

std::string cell(double value) {
  return value > 0 ? with_thousands(value) : "";
}

// What the numbers are of. Folding takes from a frozen network what the paper counts of its batch norms.
const char* rules_text(CountRules rules, const Counted& counted) {
  const bool frozen = counted.is_frozen();
  if (counted.is_int8()) {
    return rules == CountRules::kPaper
               ? "int8 network: params are the bytes of the file's numbers in 32-bit words; activations of one image"
               : "int8 network: params are the bytes of the file's numbers in 32-bit words; activations of conv and "
                 "linear layers";
  }
  if (rules == CountRules::kPaper) {
    return frozen ? "frozen network: 32-bit words, kept weights and tap positions; activations of one image\n"
                    "batch norms are folded and no longer counted: the paper's numbers are those of the network before "
                    "freezing"
                  : "paper rules: 32-bit words, kept weights and tap positions; activations of one image";
  }
  return frozen ? "frozen network: 32-bit words, kept weights and tap positions; activations of conv and linear layers"
                : "plain rules: trainable values and dense multiplications, as PyTorch counters print them";
}

void print_count_table(const CountArguments& options, const Counted& counted, const NetworkCount& count) {
  using A = Table::Align;
  const bool empty = count.empty > 0, is_tap = counted.file_bytes.has_value();
  Table table({{"layer"},
               {"op"},
               {"output"},
               {"method"},
               {"params", A::kRight},
               {"MACs", A::kRight},
               {"activations", A::kRight},
               {is_tap ? "bytes" : "", A::kRight},
               {empty ? "empty" : "", A::kRight}});
  const auto bytes_cell = [&](double bytes) { return is_tap ? cell(bytes) : ""; };
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = counted.graph.nodes()[i];
    const LayerCount& layer = count.layers[i];
    if (layer.params + layer.macs + layer.activations == 0) continue;  // relu, add: free under both rules
    table.add({node.name, op_info(node.op).name, shape_text(node.shape), method_text(node), cell(layer.params),
               cell(layer.macs), cell(layer.activations), bytes_cell(layer_bytes(counted, count, i)),
               empty && node.is_pruned() ? percent_text(layer.empty) : ""});
  }
  table.rule();
  table.add({counted.graph.name(), "", "", "", with_thousands(count.params), with_thousands(count.macs),
             with_thousands(count.activations), bytes_cell(all_bytes(counted, count)),
             empty ? percent_text(count.empty) : ""});
  std::cout << table.text() << '\n';
  std::cout << rules_text(options.rules, counted) << '\n';
  if (counted.file_bytes) {
    std::cout << fmt::format("file: {} bytes, of which {} are weights, positions, biases and scales ({})\n",
                             with_thousands(static_cast<double>(*counted.file_bytes)),
                             with_thousands(all_bytes(counted, count)), counted.type);
  } else {
    std::cout << fmt::format("as a .tap file (f32): {} bytes\n",
                             with_thousands(static_cast<double>(counted.tap_bytes)));
  }
  std::cout << fmt::format("peak activation memory, one image, layer after layer ({}): {} bytes\n",
                           counted.is_int8() ? "int8" : "f32",
                           with_thousands(static_cast<double>(peak_bytes(counted))));
}

int run_count(const CountArguments& options) {
  const Counted counted = open_target(options);
  const NetworkCount& count = counted.count;
  if (options.json) {
    print_count_json(options, counted, count);
  } else if (options.csv) {
    print_count_csv(counted, count);
  } else {
    print_count_table(options, counted, count);
  }
  return 0;
}

}  // namespace

void add_count(CLI::App& app, Action& action) {
  auto options = std::make_shared<CountArguments>();
  CLI::App* verb = app.add_subcommand("count", "count parameters, MACs, activations and bytes of a network");
  options->network.add(*verb, "an architecture, a network text file, a run or a .tap file");
  verb->get_option("NETWORK")->required();
  const std::map<std::string, CountRules> rules = {{"paper", CountRules::kPaper}, {"plain", CountRules::kPlain}};
  verb->add_option("--rules", options->rules, "paper: the hard network; plain: what PyTorch counters print")
      ->transform(CLI::Transformer(rules))
      ->option_text("paper|plain [paper]");
  const std::map<std::string, ShortcutRule> shortcuts = {
      {"auto", ShortcutRule::kAuto}, {"once", ShortcutRule::kOnce}, {"twice", ShortcutRule::kTwice}};
  verb->add_option("--shortcuts", options->shortcuts,
                   "how often the paper's activations count a projection shortcut: twice in dense networks and once in "
                   "pruned ones (auto), or the same for all")
      ->transform(CLI::Transformer(shortcuts))
      ->option_text("auto|once|twice [auto]");
  auto* json = verb->add_flag("--json", options->json, "print JSON");
  verb->add_flag("--csv", options->csv, "print CSV, one line per layer")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  onetap count resnet20 --width 83 --method sal\n"
      "  onetap count resnet20 --width 34 --method conv --rules plain\n"
      "  onetap count runs/sanet --csv > layers.csv\n"
      "  onetap count model.tap --json");
  verb->callback([options, &action] { action = [options] { return run_count(*options); }; });
}

}  // namespace onetap::tool
