#include "onetap/graph/zoo/residual.h"

namespace onetap {

std::vector<ResidualStage> cifar_stages(const ArchSpec& spec) {
  const int64_t n = (spec.depth - 2) / 6, w = spec.width;
  return {{n, w, 1}, {n, 2 * w, 2}, {n, 4 * w, 2}};
}

std::vector<ResidualStage> imagenet_w_stages(const ArchSpec& spec) {
  const int64_t w = spec.width;
  return {{1, w, 1}, {3, w, 2}, {4, 2 * w, 2}, {6, 4 * w, 2}, {3, 8 * w, 2}};
}

std::string shortcut(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from, int64_t out,
                     int64_t stride) {
  if (stride == 1 && net.channels(from) == out) return from;
  if (spec.shortcut == 'A' && net.channels(from) <= out) {
    return net.subsample(block + ".downsample", from, out, stride);
  }
  return net.bn(block + ".downsample.1", net.conv(block + ".downsample.0", from, out, 1, stride));
}

std::string add_stages(Builder& net, const ArchSpec& spec, Block block, const std::vector<ResidualStage>& stages,
                       std::string from, int first_layer) {
  int layer = first_layer;
  for (const ResidualStage& stage : stages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      const std::string name = "layer" + std::to_string(layer) + "." + std::to_string(i);
      from = block(net, spec, name, from, stage.width, i == 0 ? stage.stride : 1);
    }
    ++layer;
  }
  return from;
}

}  // namespace onetap
