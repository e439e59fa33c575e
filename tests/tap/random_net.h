// Frozen networks with random tensors.
#pragma once

#include "onetap/base/random.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/tap_net.h"
#include "tests/graph/random_graph.h"

#include <algorithm>
#include <numeric>

namespace onetap::testing {

inline std::vector<float> random_floats(size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// `taps` distinct positions per slice, ascending.
inline std::vector<uint16_t> random_positions(const Node& node, size_t slices, Random& random) {
  std::vector<uint16_t> positions;
  std::vector<uint16_t> all(static_cast<size_t>(node.kernel.area()));
  for (size_t i = 0; i < slices; ++i) {
    std::iota(all.begin(), all.end(), uint16_t{0});
    for (size_t k = all.size(); k > 1; --k) std::swap(all[k - 1], all[random.below(static_cast<uint32_t>(k))]);
    std::sort(all.begin(), all.begin() + node.method.taps);
    positions.insert(positions.end(), all.begin(), all.begin() + node.method.taps);
  }
  return positions;
}

inline TapNet fill_net(const Graph& frozen, uint64_t seed) {
  Random random(seed, Purpose::kTest, 1);
  const auto count = [](const Shape& shape) {
    return shape.empty() ? size_t{0} : static_cast<size_t>(element_count(shape));
  };
  TapNet net;
  net.graph = frozen;
  for (const Node& node : frozen.nodes()) {
    const LayerShapes shapes = layer_shapes(frozen, node);
    if (shapes.weight.empty()) continue;
    LayerTensors& tensors = net.layers[node.name];
    tensors.weight = random_floats(count(shapes.weight), random);
    tensors.bias = random_floats(count(shapes.bias), random);
    if (node.op == Op::kTapConv) {
      tensors.positions =
          random_positions(node, count(shapes.positions) / static_cast<size_t>(node.method.taps), random);
    }
  }
  return net;
}

inline TapNet random_net(uint64_t seed) {
  return fill_net(frozen_form(random_graph(seed)).graph, seed);
}

}  // namespace onetap::testing
