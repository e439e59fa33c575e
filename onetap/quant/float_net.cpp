#include "onetap/quant/float_net.h"

#include "onetap/base/fail.h"
#include "onetap/quant/int8_plan.h"

#include <cmath>
#include <limits>
#include <string>

namespace onetap {
namespace {

float float_of(double value, const std::string& name) {
  if (!(std::fabs(value) <= std::numeric_limits<float>::max())) {
    fail_data("[quant] expected weights and a bias that floats can hold, got {:g} ('{}')", value, name);
  }
  return static_cast<float>(value);
}

}  // namespace

TapNet float_net(const TapNet& int8) {
  plan_int8(int8);  // checks the scales
  TapNet net = int8;
  for (auto& [name, layer] : net.layers) {
    if (layer.weight.dtype() != DType::kI8) continue;  // kept in floats
    const auto outputs = static_cast<int64_t>(layer.scale.steps.size());
    const auto per_output = static_cast<int64_t>(layer.weight.count()) / outputs;
    const double input = int8.value_scales.at(int8.graph.source(int8.graph.node(name)).name);
    Tensor weight(DType::kF32, layer.weight.shape());
    for (int64_t i = 0; i < outputs * per_output; ++i) {
      const double q = layer.weight.data<int8_t>()[i];
      weight.data<float>()[i] = float_of(q * layer.scale.of(i / per_output), name);
    }
    if (!layer.bias.empty()) {
      Tensor bias(DType::kF32, layer.bias.shape());
      for (int64_t d = 0; d < outputs; ++d) {
        const double steps = std::ldexp(layer.bias.data<int16_t>()[d], layer.scale.bias_shift);
        bias.data<float>()[d] = float_of(steps * input * layer.scale.of(d), name);
      }
      layer.bias = std::move(bias);
    }
    layer.weight = std::move(weight);
    layer.scale = {};
  }
  net.value_scales.clear();
  return net;
}

}  // namespace onetap
