// Random networks in bytes, with scales from random images.
#pragma once

#include "onetap/runtime/calibrate.h"
#include "tests/tap/random_net.h"

#include <vector>

namespace onetap::testing {

inline std::vector<float> random_image(const Graph& graph, uint64_t seed) {
  Random random(seed, Purpose::kTest, 3);
  return random_floats(static_cast<size_t>(element_count(graph.input().shape)), random);
}

inline Calibration random_calibration(const TapNet& net, uint64_t seed, int images = 4) {
  Calibrator calibrator(net);
  for (int i = 0; i < images; ++i)
    calibrator.run(random_image(net.graph, seed * 100 + static_cast<uint64_t>(i)).data());
  return calibrator.calibration();
}

inline TapNet quantized(const TapNet& net, uint64_t seed, const QuantizeOptions& options = {}) {
  return quantize_net(net, random_calibration(net, seed), options);
}

// Every op that has an int8 form; a kernel of any shape, taps of any layout.
inline TapNet random_int8_net(uint64_t seed) {
  return quantized(random_net(seed), seed);
}

}  // namespace onetap::testing
