#include "onetap/nn/tensor_file.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"

#include <fmt/ranges.h>

#include <cstring>
#include <map>

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
  fail("[checkpoint] tensor '{}' has a type that safetensors does not have", name);
}

// Contiguous copies on the CPU, alive while a file is made of them.
struct HeldViews {
  explicit HeldViews(const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      held.push_back(tensor.detach().to(torch::kCPU).contiguous());
      views.push_back({name, dtype_of(tensor, name), tensor.sizes().vec(), held.back().data_ptr()});
    }
  }

  std::vector<torch::Tensor> held;
  std::vector<TensorView> views;
};

// Not what every convolution, linear layer and batch norm has: what a method adds, and a counter that changes nothing.
bool may_be_missing(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  return last != "weight" && last != "bias" && last != "running_mean" && last != "running_var";
}

}  // namespace

torch::Tensor to_tensor(const TensorView& view) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype != view.dtype) continue;
    // Into memory of LibTorch's own: a tensor inside a foreign file need not be aligned.
    const auto tensor = torch::empty(view.shape, torch::TensorOptions(row.torch_type));
    if (view.bytes() > 0) std::memcpy(tensor.data_ptr(), view.data, view.bytes());
    return tensor;
  }
  fail("[checkpoint] tensor '{}' has a type that LibTorch does not have", view.name);
}

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

uint32_t write_tensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata) {
  const HeldViews held(tensors);
  return write_safetensors(path, held.views, metadata);
}

std::string tensor_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  const HeldViews held(tensors);
  return safetensors_bytes(held.views, metadata);
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
    torch::Tensor target = tensor;
    target.copy_(to_tensor(*found));
  }
}

ImportReport import_weights(const SafetensorsFile& file, const NamedTensors& into, const std::string& label) {
  const torch::NoGradGuard no_grad;
  static const std::string kWrapper = "module.";
  std::map<std::string, const TensorView*> given;
  for (const TensorView& view : file.tensors()) {
    const bool wrapped = view.name.rfind(kWrapper, 0) == 0;
    given[wrapped ? view.name.substr(kWrapper.size()) : view.name] = &view;
  }
  ImportReport report;
  for (const auto& [name, tensor] : into) {
    const auto found = given.find(name);
    if (found == given.end()) {
      if (!may_be_missing(name)) {
        std::vector<std::string> names;
        for (const auto& entry : given) names.push_back(entry.first);
        fail_data("[init] expected a tensor '{}', got none{} ({})", name, did_you_mean(name, names), label);
      }
      report.kept.push_back(name);
      continue;
    }
    const TensorView& view = *found->second;
    if (view.shape != tensor.sizes().vec()) {
      fail_data("[init] expected shape [{}] for '{}', got [{}]; --init-skip leaves tensors out ({})",
                fmt::join(tensor.sizes().vec(), ", "), name, fmt::join(view.shape, ", "), label);
    }
    torch::Tensor target = tensor;
    target.copy_(to_tensor(view));
    if (!torch::isfinite(target).all().item<bool>()) {
      fail_data("[init] expected finite numbers, got nan or inf in '{}' ({})", name, label);
    }
    if (glob_match("*running_var", name) && (target < 0).any().item<bool>()) {
      fail_data("[init] expected variances of 0 or more, got a negative one in '{}' ({})", name, label);
    }
    given.erase(found);
  }
  for (const auto& entry : given) report.unused.push_back(entry.first);
  return report;
}

}  // namespace onetap::nn
