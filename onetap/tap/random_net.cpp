#include "onetap/tap/random_net.h"

#include "onetap/base/random.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/tap/binary.h"
#include "onetap/tap/codes.h"

#include <cmath>

namespace onetap {
namespace {

Tensor random_floats(const Shape& shape, float limit, Random& random) {
  Tensor tensor(DType::kF32, shape);
  auto* values = tensor.data<float>();
  for (size_t i = 0; i < tensor.count(); ++i) values[i] = random.uniform(-limit, limit);
  return tensor;
}

// One magnitude for the weights of an output, and their own signs.
void make_binary(Tensor& weight) {
  auto* values = weight.data<float>();
  const size_t of_output = weight.count() / static_cast<size_t>(weight.shape()[0]);
  for (size_t i = 0; i < weight.count(); ++i) values[i] = std::copysign(values[i / of_output * of_output], values[i]);
}

}  // namespace

TapNet random_tap_net(const Graph& frozen, uint64_t seed) {
  Random random(seed, Purpose::kRandomNet);
  TapNet net;
  net.graph = frozen;
  for (const Node& node : frozen.nodes()) {
    const LayerShapes shapes = layer_shapes(frozen, node);
    if (shapes.weight.empty()) continue;
    LayerTensors& tensors = net.layers[node.name];
    // Variance 2 / inputs: what a ReLU halves, the weights double.
    const int64_t inputs = node.out > 0 ? element_count(shapes.weight) / node.out : 1;
    tensors.weight =
        random_floats(shapes.weight, static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs))), random);
    if (is_binary(node)) make_binary(tensors.weight);
    tensors.bias = random_floats(shapes.bias, 0.5f, random);
    if (shapes.positions.empty()) continue;
    const TapLayout layout = tap_layout(frozen, node);
    tensors.positions = random_codes(layout, random);
    if (layout.may_be_empty) update_dropped(net, node.name);
  }
  return net;
}

}  // namespace onetap
