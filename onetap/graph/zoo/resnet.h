// Residual networks: the paper's own (CIFAR ResNet-(6n+2), ResNet-50 for CIFAR, ResNet-w for ImageNet).
#pragma once

#include "onetap/graph/graph.h"

namespace onetap {

struct ResNetSpec {
  std::string name;
  int64_t width = 16;
  int64_t kernel = 3;
  char shortcut = 'B';
  int64_t classes = 10;
  Shape image{3, 32, 32};
};

// Stem, three stages of (depth - 2) / 6 basic blocks with w, 2w, 4w channels, pool, fc.
Graph cifar_resnet(const ResNetSpec& spec, int64_t depth);

// Stem, bottleneck stages of 3, 4, 6, 3 blocks with planes w..8w and expansion 4, pool, fc.
Graph cifar_resnet50(const ResNetSpec& spec);

// Stride-2 stem without max-pool, basic blocks in groups of 1, 3, 4, 6, 3, widths w, w, 2w, 4w, 8w.
Graph imagenet_resnet_w(const ResNetSpec& spec);

}  // namespace onetap
