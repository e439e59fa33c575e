// What residual architectures have in common: stages of blocks, and the way around a block.
#pragma once

#include "onetap/graph/zoo/architectures.h"
#include "onetap/graph/zoo/builder.h"

#include <string>
#include <vector>

namespace onetap {

struct ResidualStage {
  int64_t blocks, width, stride;  // the stride of its first block
};

// Of a CIFAR ResNet of depth 6n + 2: w, 2w, 4w channels.
std::vector<ResidualStage> cifar_stages(const ArchSpec& spec);
// Of ResNet-w for ImageNet.
std::vector<ResidualStage> imagenet_w_stages(const ArchSpec& spec);

// The value itself where shapes agree, else a projection (B) or a free subsampling (A).
std::string shortcut(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from, int64_t out,
                     int64_t stride);

// Adds a block and returns its result.
using Block = std::string (*)(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
                              int64_t out, int64_t stride);

// Every block of every stage, named layer1.0 and so on.
std::string add_stages(Builder& net, const ArchSpec& spec, Block block, const std::vector<ResidualStage>& stages,
                       std::string from, int first_layer = 1);

}  // namespace onetap
