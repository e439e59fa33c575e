// Random graphs, frozen, with random tensors.
#pragma once

#include "onetap/base/random.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/random_net.h"
#include "tests/graph/random_graph.h"

#include <vector>

namespace onetap::testing {

inline std::vector<float> random_floats(size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

inline TapNet random_net(uint64_t seed) {
  return random_tap_net(frozen_form(random_graph(seed)).graph, seed);
}

}  // namespace onetap::testing
