// onetap export on runs: the hard network, by LibTorch.
#include "onetap/base/file.h"
#include "onetap/journal/run_files.h"
#include "onetap/nn/tensor_file.h"
#include "tools/onetap/export.h"
#include "tools/onetap/open_run.h"

#include <map>

namespace onetap::tool {

void export_run(const ExportArguments& options) {
  const torch::NoGradGuard no_grad;
  const RunFiles files(options.source);
  nn::GraphModule module(files.read_graph());
  open_checkpoint(files, options.checkpoint, module);
  // Of a layer with a method what an ordinary convolution would have: no attention, and the weights that are left.
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  std::map<std::string, torch::Tensor> finished;
  for (const auto& [name, layer] : module->trained_layers()) {
    const auto weight = layer->effective_weight();
    finished[name] = weight.masked_fill(weight == 0, 0.0);  // no zero is a negative one
  }
  nn::NamedTensors tensors;
  for (const auto& [name, tensor] : nn::state_of(*module)) {
    const size_t dot = name.rfind('.');
    const std::string last = name.substr(dot + 1);
    const auto trained = finished.find(name.substr(0, dot));
    if (trained == finished.end() || last == "bias") {
      tensors.emplace_back(name, tensor);
    } else if (last == "weight") {
      tensors.emplace_back(name, trained->second);
    }
  }
  write_file_atomic(options.out, nn::tensor_bytes(tensors, pixel_metadata_of(files.read_config())));
}

}  // namespace onetap::tool
