// Builders of the zoo's architectures. zoo.cpp has the row that names each and gives its defaults.
#pragma once

#include "onetap/graph/graph.h"

namespace onetap {

// What a network is built from, every value settled and checked.
struct ArchSpec {
  std::string name;
  int64_t depth = 20;  // of the architectures that have one: 6n + 2
  int64_t width = 16;
  int64_t kernel = 3;
  int64_t expansion = 1;
  char shortcut = 'B';
  int64_t classes = 10;
  Shape image{3, 32, 32};
};

// Stem, three stages of (depth - 2) / 6 basic blocks with w, 2w, 4w channels, pool, fc.
Graph cifar_resnet(const ArchSpec& spec);
// Stem, bottleneck stages of 3, 4, 6, 3 blocks with planes w..8w and expansion 4, pool, fc.
Graph cifar_resnet50(const ArchSpec& spec);
// Stride-2 stem without max-pool, basic blocks in groups of 1, 3, 4, 6, 3, widths w, w, 2w, 4w, 8w.
Graph imagenet_resnet_w(const ArchSpec& spec);

// The stages of cifar_resnet with modules 1x1, fixed shift, 1x1 (Wu et al., 2018).
Graph cifar_shiftresnet(const ArchSpec& spec);
// Four groups of such modules before which a batch norm stands, for ImageNet; widths w to 16w (Wu et al., 2018).
Graph imagenet_shiftnet(const ArchSpec& spec);

// The stages of cifar_resnet and of imagenet_resnet_w with modules 1x1, active shift, 1x1 (Jeon & Kim, 2018).
Graph cifar_asresnet(const ArchSpec& spec);
Graph imagenet_asresnet_w(const ArchSpec& spec);

// For 32x32 images: strides 1, 1, 2, 2, 1, 2, 1, ReLU, and a projection where channels change (Sandler et al., 2018).
Graph cifar_mobilenetv2(const ArchSpec& spec);
// For 32x32 images: eight fire modules, batch norm after every convolution but the last (Iandola et al., 2016).
Graph cifar_squeezenet(const ArchSpec& spec);

}  // namespace onetap
