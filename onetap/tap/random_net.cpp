#include "onetap/tap/random_net.h"

#include "onetap/base/random.h"

#include <cmath>

namespace onetap {
namespace {

std::vector<float> random_floats(const Shape& shape, float limit, Random& random) {
  std::vector<float> values(shape.empty() ? 0 : static_cast<size_t>(element_count(shape)));
  for (float& value : values) value = random.uniform(-limit, limit);
  return values;
}

std::vector<uint16_t> random_positions(const Node& node, const Shape& shape, Random& random) {
  std::vector<uint16_t> positions;
  for (int64_t slice = 0; slice < element_count(shape) / node.method.taps; ++slice) {
    const auto kept =
        random_choice(static_cast<uint16_t>(node.kernel.area()), static_cast<size_t>(node.method.taps), random);
    positions.insert(positions.end(), kept.begin(), kept.end());
  }
  return positions;
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
    tensors.bias = random_floats(shapes.bias, 0.5f, random);
    if (!shapes.positions.empty()) tensors.positions = random_positions(node, shapes.positions, random);
  }
  return net;
}

}  // namespace onetap
