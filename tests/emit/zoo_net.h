// Networks of the zoo with random weights, and their golden samples, for tests of generated C.
#pragma once

#include "onetap/emit/c_project.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/random_net.h"
#include "tests/graph/small_nets.h"

#include <string>
#include <vector>

namespace onetap::testing {

// Channels differ, and pixels become about -1 to 1: the images by which tests quantize.
constexpr PixelScale kPixels = {{0.5f, 0.45f, 0.4f}, {0.5f, 0.55f, 0.6f}};

inline GoldenSample golden_of(const TapNet& net, CInput kind = CInput::kFloats) {
  GoldenSample golden = golden_input(net.graph, kind);
  const std::vector<float> input = golden.input_floats(net);
  golden.output = net.is_int8() ? Int8Reference(net).run(input.data()) : run_reference(net, input.data());
  return golden;
}

// `share`: dense, or what the sal layers share (1, 4, 4x4, all, ...); -drop behind it leaves a quarter of the sets
// empty.
inline TapNet zoo_net(const NetSpec& spec, std::string share) {
  Graph graph = build_network(spec);
  const bool drops = share.size() > 5 && share.substr(share.size() - 5) == "-drop";
  if (drops) share.resize(share.size() - 5);
  if (share != "dense") apply_method(graph, sal_method(1, parse_share(share).value()), "");
  Graph frozen = frozen_form(graph).graph;
  TapNet net = random_tap_net(frozen, 1);
  if (!drops) return net;
  for (const Node& node : frozen.nodes()) {
    if (node.op != Op::kTapConv) continue;
    auto& positions = net.layers[node.name].positions;
    for (size_t i = 0; i < positions.size(); i += 4) positions[i] = static_cast<uint16_t>(node.kernel.area());
    update_dropped(net, node.name);
  }
  return net;
}

}  // namespace onetap::testing
