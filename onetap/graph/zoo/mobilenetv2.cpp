// MobileNetV2 for CIFAR. A width other than 32 scales every layer.
#include "onetap/graph/zoo/residual.h"

namespace onetap {
namespace {

struct Row {
  int64_t expansion, out, blocks, stride;
};

constexpr Row kRows[] = {{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
                         {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

// 1x1 up, depthwise, 1x1 down without a ReLU. A block of stride 1 has a way around it, a projection if need be.
std::string inverted_residual(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
                              int64_t expansion, int64_t out, int64_t stride) {
  std::string x = net.conv(block + ".conv1", from, expansion * net.channels(from), 1);
  x = net.relu(block + ".relu1", net.bn(block + ".bn1", x));
  x = net.depthwise(block + ".conv2", x, spec.kernel, stride);
  x = net.relu(block + ".relu2", net.bn(block + ".bn2", x));
  x = net.bn(block + ".bn3", net.conv(block + ".conv3", x, out, 1));
  return stride == 1 ? net.add(block + ".add", x, shortcut(net, spec, block, from, out, stride)) : x;
}

}  // namespace

Graph cifar_mobilenetv2(const ArchSpec& spec) {
  const auto scaled = [&](int64_t channels) { return scaled_channels(channels, spec.width, 32); };
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), scaled(32), spec.kernel);
  x = net.relu("relu1", net.bn("bn1", x));
  int layer = 1;
  for (const Row& row : kRows) {
    for (int64_t i = 0; i < row.blocks; ++i) {
      const std::string block = "layer" + std::to_string(layer) + "." + std::to_string(i);
      x = inverted_residual(net, spec, block, x, row.expansion, scaled(row.out), i == 0 ? row.stride : 1);
    }
    ++layer;
  }
  x = net.relu("relu2", net.bn("bn2", net.conv("conv2", x, scaled(1280), 1)));
  net.head(x, spec.classes);
  return net.take();
}

}  // namespace onetap
