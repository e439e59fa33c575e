// A small residual network of the zoo, for tests that need one with every part.
#pragma once

#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/zoo/zoo.h"

namespace onetap::testing {

// ResNet-8 of width 4: six 3x3 convolutions in blocks, two shortcuts.
inline Graph small_resnet(const Method& method, char shortcut = 'B') {
  NetSpec spec;
  spec.arch = "resnet8";
  spec.width = 4;
  spec.shortcut = shortcut;
  Graph graph = build_network(spec);
  apply_method(graph, method, "");
  return graph;
}

}  // namespace onetap::testing
