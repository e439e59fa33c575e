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

// Parameters and buffers of a module, by dotted name, in the order of registration.
NamedTensors state_of(const torch::nn::Module& module);

// Writes and syncs; tensors on any device, in any memory layout.
void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata = {});

// Copies every tensor of the file into the one of the same name. kData if names, shapes or types differ.
void load_tensors(const SafetensorsFile& file, const NamedTensors& into, const std::string& label);

}  // namespace onetap::nn
