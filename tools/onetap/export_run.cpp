// onetap export on runs: the hard network, by LibTorch.
#include "onetap/base/file.h"
#include "onetap/journal/run_files.h"
#include "onetap/nn/tensor_file.h"
#include "tools/onetap/export.h"
#include "tools/onetap/open_run.h"

namespace onetap::tool {

void export_run(const ExportArguments& options) {
  const torch::NoGradGuard no_grad;
  const RunFiles files(options.source);
  nn::GraphModule module(files.read_graph());
  open_checkpoint(files, options.checkpoint, module);
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  for (const auto& sal : module->sal_layers()) sal.layer->weight.masked_fill_(sal.layer->mask() == 0, 0.0);
  nn::NamedTensors tensors;
  for (auto& [name, tensor] : nn::state_of(*module)) {
    const std::string last = name.substr(name.rfind('.') + 1);
    if (last != "attention") tensors.emplace_back(name, tensor);
  }
  write_file_atomic(options.out, nn::tensor_bytes(tensors));
}

}  // namespace onetap::tool
