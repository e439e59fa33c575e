#include "onetap/nn/tensor_file.h"

#include "onetap/base/fail.h"

#include <fmt/ranges.h>

#include <cstring>

namespace onetap::nn {
namespace {

struct TypeRow {
  torch::ScalarType torch_type;
  DType dtype;
};

constexpr TypeRow kTypes[] = {{torch::kFloat64, DType::kF64}, {torch::kFloat32, DType::kF32},
                              {torch::kFloat16, DType::kF16}, {torch::kBFloat16, DType::kBF16},
                              {torch::kInt64, DType::kI64},   {torch::kInt32, DType::kI32},
                              {torch::kInt16, DType::kI16},   {torch::kInt8, DType::kI8},
                              {torch::kUInt8, DType::kU8},    {torch::kBool, DType::kBool}};

DType dtype_of(const torch::Tensor& tensor, const std::string& name) {
  for (const TypeRow& row : kTypes) {
    if (row.torch_type == tensor.scalar_type()) return row.dtype;
  }
  fail("[checkpoint] tensor '{}' has a type that safetensors has not", name);
}

}  // namespace

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata) {
  std::vector<torch::Tensor> held;  // contiguous copies live until the file is written
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    held.push_back(tensor.detach().to(torch::kCPU).contiguous());
    TensorView view;
    view.name = name;
    view.dtype = dtype_of(tensor, name);
    view.shape = tensor.sizes().vec();
    view.data = held.back().data_ptr();
    views.push_back(std::move(view));
  }
  write_safetensors(path, std::move(views), metadata);
}

void load_tensors(const SafetensorsFile& file, const NamedTensors& into, const std::string& label) {
  const torch::NoGradGuard no_grad;
  if (file.tensors().size() != into.size()) {
    fail_data("[checkpoint] expected {} tensors, got {} ({})", into.size(), file.tensors().size(), label);
  }
  for (const auto& [name, tensor] : into) {
    const TensorView* found = file.find(name);
    if (found == nullptr) fail_data("[checkpoint] expected a tensor '{}', got none ({})", name, label);
    if (found->dtype != dtype_of(tensor, name) || found->shape != tensor.sizes().vec()) {
      fail_data("[checkpoint] expected {} [{}] for '{}', got {} [{}] ({})", dtype_name(dtype_of(tensor, name)),
                fmt::join(tensor.sizes().vec(), ", "), name, dtype_name(found->dtype), fmt::join(found->shape, ", "),
                label);
    }
    // Through memory of LibTorch's own: a tensor inside a foreign file need not be aligned.
    const auto source = torch::empty(tensor.sizes(), torch::TensorOptions(tensor.scalar_type()));
    if (found->bytes() > 0) std::memcpy(source.data_ptr(), found->data, found->bytes());
    torch::Tensor target = tensor;
    target.copy_(source);
  }
}

}  // namespace onetap::nn
