#include "onetap/quant/float_net.h"

#include <cmath>

namespace onetap {

TapNet float_net(const TapNet& int8) {
  TapNet net = int8;
  for (auto& [name, layer] : net.layers) {
    if (layer.weight.dtype() != DType::kI8) continue;  // kept in floats
    const auto outputs = static_cast<int64_t>(layer.scale.steps.size());
    const auto per_output = static_cast<int64_t>(layer.weight.count()) / outputs;
    const double input = int8.value_scales.at(int8.graph.source(int8.graph.node(name)).name);
    Tensor weight(DType::kF32, layer.weight.shape());
    for (int64_t i = 0; i < outputs * per_output; ++i) {
      const double q = layer.weight.data<int8_t>()[i];
      weight.data<float>()[i] = static_cast<float>(q * layer.scale.of(i / per_output));
    }
    if (!layer.bias.empty()) {
      Tensor bias(DType::kF32, layer.bias.shape());
      for (int64_t d = 0; d < outputs; ++d) {
        const double steps = std::ldexp(layer.bias.data<int16_t>()[d], layer.scale.bias_shift);
        bias.data<float>()[d] = static_cast<float>(steps * input * layer.scale.of(d));
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
