// The paper's own networks: CIFAR ResNet-(6n+2), ResNet-50 for CIFAR, ResNet-w for ImageNet.
#include "onetap/graph/zoo/residual.h"

namespace onetap {
namespace {

std::string basic_block(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
                        int64_t out, int64_t stride) {
  std::string x = net.conv(block + ".conv1", from, out, spec.kernel, stride);
  x = net.relu(block + ".relu1", net.bn(block + ".bn1", x));
  x = net.bn(block + ".bn2", net.conv(block + ".conv2", x, out, spec.kernel));
  x = net.add(block + ".add", x, shortcut(net, spec, block, from, out, stride));
  return net.relu(block + ".relu2", x);
}

std::string bottleneck(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
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

Graph residual(const ArchSpec& spec, int64_t stem_stride, int first_layer, Block block,
               const std::vector<ResidualStage>& stages) {
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), spec.width, spec.kernel, stem_stride);
  x = net.relu("relu", net.bn("bn1", x));
  net.head(add_stages(net, spec, block, stages, x, first_layer), spec.classes);
  return net.take();
}

}  // namespace

Graph cifar_resnet(const ArchSpec& spec) {
  return residual(spec, 1, 1, basic_block, cifar_stages(spec));
}

Graph cifar_resnet50(const ArchSpec& spec) {
  const int64_t w = spec.width;
  return residual(spec, 1, 1, bottleneck, {{3, w, 1}, {4, 2 * w, 2}, {6, 4 * w, 2}, {3, 8 * w, 2}});
}

Graph imagenet_resnet_w(const ArchSpec& spec) {
  return residual(spec, 2, 0, basic_block, imagenet_w_stages(spec));
}

}  // namespace onetap
