#include "onetap/train/finite.h"

#include <cmath>
#include <vector>

namespace onetap {
namespace {

bool has_values(const torch::Tensor& tensor) {
  return tensor.is_floating_point() && tensor.numel() > 0;
}

}  // namespace

std::string not_finite_text(double value) {
  return std::isnan(value) ? "nan" : "inf";
}

bool all_finite(const nn::NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    if (has_values(tensor)) values.push_back(tensor.detach().reshape({-1}));
  }
  if (values.empty()) return true;
  // A GPU takes longer to start a kernel for every tensor than to lay them side by side.
  if (values.front().is_cuda()) values = {torch::cat(values)};
  // The smallest and the largest value are not numbers if one value is not, and are infinite if one is.
  std::vector<torch::Tensor> ends;
  for (const torch::Tensor& each : values) {
    const auto [least, most] = torch::aminmax(each);
    ends.push_back(least.to(torch::kFloat64));
    ends.push_back(most.to(torch::kFloat64));
  }
  return torch::isfinite(torch::stack(ends)).all().item<bool>();
}

std::string first_not_finite(const nn::NamedTensors& tensors) {
  for (const auto& entry : tensors) {
    if (!all_finite({entry})) return entry.first;
  }
  return "";
}

}  // namespace onetap
