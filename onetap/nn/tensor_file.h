// LibTorch tensors to and from safetensors files.
#pragma once

#include "onetap/base/safetensors.h"
#include "onetap/nn/torch.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace onetap::nn {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// A copy in memory of its own.
torch::Tensor to_tensor(const TensorView& view);

// Parameters and buffers of a module, by dotted name, in the order of registration.
NamedTensors state_of(const torch::nn::Module& module);

// Writes and syncs; tensors on any device, in any memory layout. Returns the CRC-32C of the file.
uint32_t write_tensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata = {});

// The file in memory.
std::string tensor_bytes(const NamedTensors& tensors, const Metadata& metadata = {});

// Copies every tensor of the file into the one of the same name. kData if names, shapes or types differ.
void load_tensors(const SafetensorsFile& file, const NamedTensors& into, const std::string& label);

// Names in a file of weights that a module did not take, and parameters of the module that the file did not give.
struct ImportReport {
  std::vector<std::string> unused;
  std::vector<std::string> kept;  // what methods add (attention logits) and counters: PyTorch models do not have them
};

// Copies weights from elsewhere into a module: any float type, a leading "module." (DataParallel) is passed over.
// kData if a weight, bias or batch-norm statistic of the module is missing or a shape differs.
ImportReport import_weights(const SafetensorsFile& file, const NamedTensors& into, const std::string& label);

}  // namespace onetap::nn
