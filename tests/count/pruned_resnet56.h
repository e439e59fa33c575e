// ResNet-56 with option A as Li et al. prune it: fewer filters in the first convolutions of its blocks.
#pragma once

#include "onetap/graph/zoo/zoo.h"

#include <set>
#include <string>

namespace onetap::testing {

// Filters kept of 16, 32 and 64. Convolutions count from 1, the stem; the first of a block has an even number.
inline Graph pruned_resnet56(const int64_t (&kept)[3], const std::set<int>& left_alone) {
  NetSpec spec;
  spec.arch = "resnet56";
  spec.shortcut = 'A';
  const Graph whole = build_network(spec);
  Graph graph("pruned-resnet56");
  for (Node node : whole.nodes()) {
    for (int stage = 0; stage < 3; ++stage) {
      for (int block = 0; block < 9; ++block) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".conv1";
        if (node.name == name && left_alone.count(2 + 2 * (9 * stage + block)) == 0) node.out = kept[stage];
      }
    }
    graph.add(std::move(node));
  }
  return graph;
}

// 10 % of the filters: 14.4, 28.8 and 57.6 of them stay, rounded down.
inline Graph pruned_a() {
  return pruned_resnet56({14, 28, 57}, {16, 20, 38, 54});
}

// 60, 30 and 10 %: 6.4, 22.4 and 57.6 stay.
inline Graph pruned_b() {
  return pruned_resnet56({6, 22, 57}, {16, 18, 20, 34, 38, 54});
}

}  // namespace onetap::testing
