// onetap export: frozen networks and runs in formats that others read.
#include "tools/onetap/export.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/safetensors.h"
#include "onetap/journal/run_files.h"
#include "onetap/quant/float_net.h"
#include "onetap/runtime/memory.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/export_c.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/onnx.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/training.h"

#include <deque>
#include <memory>

namespace onetap::tool {
namespace {

// Dense tensors with zeros where weights were pruned: any framework runs it, none gains by it.
std::string dense_safetensors(const TapNet& given) {
  const TapNet net = given.is_int8() ? float_net(given) : given;
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

// The heading of a format's own flags in the help text.
std::string flags_of(const std::string& format) {
  return "With --to " + format;
}

// Another format's flags are mistakes, not to be passed over.
void check_flags(const CLI::App& verb, const ExportArguments& options) {
  for (const char* format : {"safetensors", "onnx", "c"}) {
    if (options.format == format) continue;
    for (const CLI::Option* flag : verb.get_options()) {
      if (flag->get_group() == flags_of(format) && flag->count() > 0) {
        fail_usage("[export] {} is a flag of --to {}, got --to {}", flag->get_name(), format, options.format);
      }
    }
  }
  if (verb.get_option("--checkpoint")->count() > 0 && names_tap(options.source)) {
    fail_usage("[export] --checkpoint needs a run, got a .tap file: {}", options.source);
  }
}

int run_export(const ExportArguments& options, ExportCArguments to_c) {
  if (options.format == "c") {
    to_c.source = frozen_file(options.source, "export").string();
    to_c.out = options.out;
    if (!names_tap(to_c.source)) fail_data("[export] expected a .tap file, got {}", options.source);
    export_c(to_c);
    return 0;
  }
  const bool to_onnx = options.format == "onnx";
  check_output_file("export", options.source, options.out);
  if (names_tap(options.source)) {
    const TapNet net = read_tap(options.source);
    write_file_atomic(options.out, naming_file(options.source, [&] {
                        return to_onnx ? onnx_bytes(net, options.onnx) : dense_safetensors(net);
                      }));
  } else if (to_onnx && holds_frozen(options.source)) {
    const std::filesystem::path file = frozen_file(options.source, "export");
    const TapNet net = read_tap(file);
    write_file_atomic(options.out, naming_file(file, [&] { return onnx_bytes(net, options.onnx); }));
  } else if (!RunFiles(options.source).holds_run()) {
    fail_data("[export] expected {}a .tap file, got {}", to_onnx ? "" : "a run directory or ", options.source);
  } else if (to_onnx) {
    fail_usage("[export] expected a .tap file, got the run {} without one: freeze it first (onetap freeze {})",
               options.source, options.source);
  } else {
    open_training("export").export_run(options);
  }
  console().print(options.out);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportArguments>();
  auto to_c = std::make_shared<ExportCArguments>();
  CLI::App* verb =
      app.add_subcommand("export", "write a run or a .tap file as .safetensors, or a .tap file as ONNX or C");
  verb->add_option("SOURCE", options->source, "a run directory or a .tap file")->required();
  verb->add_option("--to", options->format, "format")->check(CLI::IsMember({"safetensors", "onnx", "c"}))->required();
  verb->add_option("-o,--out", options->out, "the file to write; for C, the folder")->required()->option_text("OUT");
  verb->add_option("--checkpoint", options->checkpoint, "checkpoint of a run: last, best or a step number")
      ->check(offered(checkpoint_words()))
      ->option_text("WHICH [last]")
      ->group(flags_of("safetensors"));
  verb->add_option("--name", to_c->name, "name of functions and files (default: from the .tap file)")
      ->option_text("NAME")
      ->group(flags_of("c"));
  verb->add_option("--schedule", to_c->schedule, "rows (least memory) or layers")
      ->check(CLI::IsMember({"rows", "layers"}))
      ->option_text("HOW [rows]")
      ->group(flags_of("c"));
  verb->add_option("--input", to_c->input, "what the C code takes: scaled floats, or pixels (bytes of 0 to 255)")
      ->check(CLI::IsMember({"floats", "pixels"}))
      ->option_text("WHAT [floats]")
      ->group(flags_of("c"));
  const auto add_limit = [&](const char* flag, const char* help, int64_t& bytes) {
    verb->add_option_function<std::string>(
            flag, [flag, &bytes](const std::string& text) { bytes = parse_memory(text, flag); }, help)
        ->option_text("SIZE")
        ->group(flags_of("c"));
  };
  add_limit("--flash", "refuse a network that needs more flash", to_c->flash);
  add_limit("--ram", "refuse a network that needs more RAM: arena, input, output and stack", to_c->ram);
  verb->add_flag("--json", to_c->json, "print the sizes as JSON")->group(flags_of("c"));
  verb->add_option("--opset", options->onnx.opset, "version of ONNX's operators, 13 to 20")
      ->option_text("N [13]")
      ->group(flags_of("onnx"));
  verb->add_option("--batch", options->onnx.batch, "batch size of the model: a number, or symbolic for any")
      ->option_text("N [symbolic]")
      ->group(flags_of("onnx"));
  verb->add_option("--form", options->onnx.form,
                   "layers whose outputs share positions: dense, or shift (shifted channels, then a 1x1 convolution)")
      ->check(CLI::IsMember({"dense", "shift"}))
      ->option_text("FORM [dense]")
      ->group(flags_of("onnx"));
  verb->footer(
      "Examples:\n"
      "  onetap export runs/sanet --to safetensors -o weights.safetensors\n"
      "  onetap export model.tap --to safetensors -o dense.safetensors\n"
      "  onetap export model.tap --to onnx -o model.onnx\n"
      "  onetap export model.tap --to c --flash 256K --ram 64K -o model\n"
      "  onetap export model.tap --to onnx -o model.onnx --opset 18 --batch 1 --form shift\n"
      "  onetap export runs/sanet --to onnx -o model.onnx          (runs/sanet/model.tap)\n"
      "\nA run is exported as its hard network with torchvision's names, pruned weights as zeros, batch norms not "
      "folded:\n"
      "PyTorch and 'onetap train --init' load it. A .tap file is exported as folded weights and biases.\n"
      "ONNX has the whole network for ONNX runtimes, which compute the zeros too; its input is scaled pixels.\n"
      "C is a folder of C99 sources without dependencies, with a self-test.");
  verb->callback([options, to_c, verb, &action] {
    action = [options, to_c, verb] {
      check_flags(*verb, *options);
      return run_export(*options, *to_c);
    };
  });
}

}  // namespace onetap::tool
