// onetap nets: the architectures, and one of them as a table or as text.
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/network_argument.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace onetap::tool {
namespace {

struct NetsOptions {
  NetworkArgument network;
  std::string tap;
  bool text = false;
  bool json = false;
};

std::string size_text(Extent2 extent) {
  return fmt::format("{}x{}", extent.h, extent.w);
}

void list_zoo(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ZooEntry& entry : zoo()) {
      list.push_back({{"name", entry.name},
                      {"summary", entry.summary},
                      {"width", entry.default_width},
                      {"classes", entry.default_classes},
                      {"image", entry.default_image}});
      if (entry.default_kernel) list.back()["kernel"] = *entry.default_kernel;
      if (entry.default_expansion) list.back()["expansion"] = *entry.default_expansion;
    }
    std::cout << json_text(list, 2) << '\n';
    return;
  }
  using A = Table::Align;
  Table table(
      {{"name"}, {"width", A::kRight}, {"expansion", A::kRight}, {"classes", A::kRight}, {"image"}, {"what it is"}});
  for (const ZooEntry& entry : zoo()) {
    const std::string expansion = entry.default_expansion ? std::to_string(*entry.default_expansion) : "";
    table.add({entry.name, std::to_string(entry.default_width), expansion, std::to_string(entry.default_classes),
               shape_text(entry.default_image), entry.summary});
  }
  std::cout << table.text()
            << "\nAny depth of 6n+2 works where the name ends with one. A path to a network text file works, too.\n";
}

void print_network_json(const Graph& graph, const NetworkCount& count) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = graph.nodes()[i];
    layers.push_back({{"name", node.name},
                      {"op", op_info(node.op).name},
                      {"shape", node.shape},
                      {"params", count.layers[i].params},
                      {"macs", count.layers[i].macs},
                      {"method", method_text(node)}});
  }
  const nlohmann::ordered_json object = {
      {"name", graph.name()}, {"params", count.params}, {"macs", count.macs}, {"layers", layers}};
  std::cout << json_text(object, 2) << '\n';
}

void print_network_table(const Graph& graph, const NetworkCount& count) {
  using A = Table::Align;
  Table table(
      {{"layer"}, {"op"}, {"kernel"}, {"stride"}, {"output"}, {"params", A::kRight}, {"MACs", A::kRight}, {"method"}});
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = graph.nodes()[i];
    const OpInfo& info = op_info(node.op);
    const LayerCount& layer = count.layers[i];
    table.add({node.name, info.name, info.has(Attribute::kKernel) ? size_text(node.kernel) : "",
               info.has(Attribute::kStride) ? size_text(node.stride) : "", shape_text(node.shape),
               layer.params > 0 ? with_thousands(layer.params) : "", layer.macs > 0 ? with_thousands(layer.macs) : "",
               method_text(node)});
  }
  table.rule();
  table.add({graph.name(), "", "", "", "", with_thousands(count.params), with_thousands(count.macs), ""});
  std::cout << table.text()
            << "\nparams: 32-bit words of the hard network, kept weights and tap positions, as the paper counts.\n";
}

int run_nets(const NetsOptions& options) {
  if (options.network.name.empty()) {
    list_zoo(options.json);
    return 0;
  }
  if (!options.tap.empty()) check_output_file("nets", options.tap);
  const Graph graph = options.network.build();
  if (!options.tap.empty()) {
    TapNet net = random_tap_net(frozen_form(graph).graph, 1);
    net.facts["weights"] = "random";
    write_tap(options.tap, net);
    return 0;
  }
  if (options.text) {
    std::cout << network_text(graph);
  } else if (options.json) {
    print_network_json(graph, count_network(graph, CountRules::kPaper));
  } else {
    print_network_table(graph, count_network(graph, CountRules::kPaper));
  }
  return 0;
}

}  // namespace

void add_nets(CLI::App& app, Action& action) {
  auto options = std::make_shared<NetsOptions>();
  CLI::App* verb = app.add_subcommand("nets", "list the architectures, or print one");
  options->network.add(*verb, "an architecture or a network text file");
  verb->add_flag("--text", options->text, "print a network text file, to edit and train it");
  verb->add_option("--tap", options->tap,
                   "write it frozen, with random weights, to measure speed and size before training")
      ->check(some_name())
      ->option_text("FILE");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap nets\n"
      "  onetap nets resnet20 --width 83\n"
      "  onetap nets shiftresnet110 --expansion 6\n"
      "  onetap nets resnet20 --width 16 --method sal --share 4 --text > my.net\n"
      "  onetap train --arch my.net --data shapes --out runs/mine\n"
      "  onetap nets resnet20 --width 80 --method sal --share 4 --tap try.tap && onetap bench try.tap");
  verb->callback([options, &action] { action = [options] { return run_nets(*options); }; });
}

}  // namespace onetap::tool
