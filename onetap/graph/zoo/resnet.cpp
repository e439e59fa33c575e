#include "onetap/graph/zoo/resnet.h"

#include "onetap/graph/zoo/builder.h"

namespace onetap {
namespace {

// Identity where shapes agree, else a projection (B) or a free subsampling (A).
std::string shortcut(Builder& net, const ResNetSpec& spec, const std::string& block, const std::string& from,
                     int64_t out, int64_t stride) {
  if (stride == 1 && net.channels(from) == out) return from;
  if (spec.shortcut == 'A' && net.channels(from) <= out) {
    return net.subsample(block + ".downsample", from, out, stride);
  }
  return net.bn(block + ".downsample.1", net.conv(block + ".downsample.0", from, out, 1, stride));
}

std::string basic_block(Builder& net, const ResNetSpec& spec, const std::string& block, const std::string& from,
                        int64_t out, int64_t stride) {
  std::string x = net.conv(block + ".conv1", from, out, spec.kernel, stride);
  x = net.relu(block + ".relu1", net.bn(block + ".bn1", x));
  x = net.bn(block + ".bn2", net.conv(block + ".conv2", x, out, spec.kernel));
  x = net.add(block + ".add", x, shortcut(net, spec, block, from, out, stride));
  return net.relu(block + ".relu2", x);
}

std::string bottleneck(Builder& net, const ResNetSpec& spec, const std::string& block, const std::string& from,
                       int64_t planes, int64_t stride) {
  constexpr int64_t kExpansion = 4;
  std::string x = net.conv(block + ".conv1", from, planes, 1);
  x = net.relu(block + ".relu1", net.bn(block + ".bn1", x));
  x = net.conv(block + ".conv2", x, planes, spec.kernel, stride);
  x = net.relu(block + ".relu2", net.bn(block + ".bn2", x));
  x = net.bn(block + ".bn3", net.conv(block + ".conv3", x, planes * kExpansion, 1));
  x = net.add(block + ".add", x, shortcut(net, spec, block, from, planes * kExpansion, stride));
  return net.relu(block + ".relu3", x);
}

struct Stage {
  int64_t blocks, width, stride;
};

using Block = std::string (*)(Builder&, const ResNetSpec&, const std::string&, const std::string&, int64_t, int64_t);

Graph residual(const ResNetSpec& spec, int64_t stem_stride, int first_layer, Block block,
               const std::vector<Stage>& stages) {
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), spec.width, spec.kernel, stem_stride);
  x = net.relu("relu", net.bn("bn1", x));
  int layer = first_layer;
  for (const Stage& stage : stages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      const std::string name = "layer" + std::to_string(layer) + "." + std::to_string(i);
      x = block(net, spec, name, x, stage.width, i == 0 ? stage.stride : 1);
    }
    ++layer;
  }
  net.head(x, spec.classes);
  return net.take();
}

}  // namespace

Graph cifar_resnet(const ResNetSpec& spec, int64_t depth) {
  const int64_t n = (depth - 2) / 6, w = spec.width;
  return residual(spec, 1, 1, basic_block, {{n, w, 1}, {n, 2 * w, 2}, {n, 4 * w, 2}});
}

Graph cifar_resnet50(const ResNetSpec& spec) {
  const int64_t w = spec.width;
  return residual(spec, 1, 1, bottleneck, {{3, w, 1}, {4, 2 * w, 2}, {6, 4 * w, 2}, {3, 8 * w, 2}});
}

Graph imagenet_resnet_w(const ResNetSpec& spec) {
  const int64_t w = spec.width;
  return residual(spec, 2, 0, basic_block, {{1, w, 1}, {3, w, 2}, {4, 2 * w, 2}, {6, 4 * w, 2}, {3, 8 * w, 2}});
}

}  // namespace onetap
