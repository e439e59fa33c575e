#include "onetap/tap/fold_norm.h"

#include <cmath>

namespace onetap {
namespace {

Tensor rounded(const std::vector<double>& values) {
  return Tensor::of(std::vector<float>(values.begin(), values.end()), {static_cast<int64_t>(values.size())});
}

}  // namespace

ScaleShift::ScaleShift(const NormTensors& norm) {
  const float *weight = norm.weight.data<float>(), *bias = norm.bias.data<float>(),
              *mean = norm.running_mean.data<float>(), *variance = norm.running_var.data<float>();
  for (size_t c = 0; c < norm.weight.count(); ++c) {
    scale.push_back(weight[c] / std::sqrt(static_cast<double>(variance[c]) + norm.epsilon));
    shift.push_back(bias[c] - mean[c] * scale.back());
  }
}

LayerTensors affine_layer(const ScaleShift& norm) {
  LayerTensors layer;
  layer.weight = rounded(norm.scale);
  layer.bias = rounded(norm.shift);
  return layer;
}

void fold_norm(const ScaleShift& norm, LayerTensors& layer) {
  auto* weight = layer.weight.data<float>();
  const size_t each = layer.weight.count() / norm.scale.size();
  for (size_t i = 0; i < layer.weight.count(); ++i) weight[i] = static_cast<float>(weight[i] * norm.scale[i / each]);
  std::vector<double> shift = norm.shift;
  const float* bias = layer.bias.empty() ? nullptr : layer.bias.data<float>();
  for (size_t c = 0; bias != nullptr && c < shift.size(); ++c) shift[c] += bias[c] * norm.scale[c];
  layer.bias = rounded(shift);
}

}  // namespace onetap
