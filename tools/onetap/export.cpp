// onetap export: frozen networks and runs in formats that others read.
#include "tools/onetap/export.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/safetensors.h"
#include "onetap/emit/onnx.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/verbs.h"

#include <deque>
#include <memory>

namespace onetap::tool {
namespace {

// Dense tensors with zeros where weights were pruned: any framework runs it, none gains by it.
std::string dense_safetensors(const TapNet& net) {
  std::deque<std::vector<float>> held;
  std::vector<TensorView> views;
  for (const Node& node : net.graph.nodes()) {
    const LayerShapes shapes = layer_shapes(net.graph, node);
    if (shapes.weight.empty()) continue;
    views.push_back({node.name + ".weight", DType::kF32, dense_shape(net.graph, node),
                     held.emplace_back(dense_weight(net, node)).data()});
    if (!shapes.bias.empty()) {
      views.push_back({node.name + ".bias", DType::kF32, shapes.bias, floats_of(node, net.tensors(node).bias)});
    }
  }
  return safetensors_bytes(std::move(views));
}

int run_export(const ExportArguments& options) {
  const bool to_onnx = options.format == "onnx";
  if (looks_like_tap(options.source)) {
    const TapNet net = read_tap(options.source);
    write_file_atomic(options.out, to_onnx ? onnx_model(net) : dense_safetensors(net));
  } else if (!RunFiles(options.source).holds_run()) {
    fail_data("[export] expected {}a .tap file, got {}", to_onnx ? "" : "a run directory or ", options.source);
  } else if (to_onnx) {
    fail_usage("[export] expected a .tap file, got the run {}: freeze it first (onetap freeze {} -o model.tap)",
               options.source, options.source);
  } else {
    export_run(options);
  }
  console().print(options.out);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportArguments>();
  CLI::App* verb = app.add_subcommand("export", "a run or a .tap file as .safetensors, a .tap file as .onnx");
  verb->add_option("SOURCE", options->source, "a run directory or a .tap file")->required();
  verb->add_option("--to", options->format, "format")->check(CLI::IsMember({"safetensors", "onnx"}))->required();
  verb->add_option("-o,--out", options->out, "the file to write")->required()->option_text("FILE");
  verb->add_option("--checkpoint", options->checkpoint, "of a run: last, best or a step number")
      ->option_text("WHICH [last]");
  verb->footer(
      "Examples:\n"
      "  onetap export runs/sanet --to safetensors -o weights.safetensors\n"
      "  onetap export model.tap --to safetensors -o dense.safetensors\n"
      "  onetap export model.tap --to onnx -o model.onnx\n"
      "\nA run gives the hard network with torchvision's names, pruned weights as zeros, batch norms as they are:\n"
      "PyTorch loads it, and so does 'onetap train --init'. A .tap gives the folded network: weights and biases.\n"
      "As ONNX it is the whole network for ONNX runtimes, which compute the zeros too; the input are scaled pixels.");
  verb->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace onetap::tool
