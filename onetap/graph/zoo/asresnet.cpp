// AS-ResNet (Jeon & Kim): [w x E] for CIFAR, AS-ResNet-w for ImageNet.
#include "onetap/graph/zoo/residual.h"

namespace onetap {
namespace {

// Batch norms stand before the convolutions; the stride sits in the active shift. Where shapes change, the projection
// reads the normalised input and has no batch norm of its own.
std::string active_shift_module(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
                                int64_t out, int64_t stride) {
  const std::string ready = net.relu(block + ".relu1", net.bn(block + ".bn1", from));
  std::string x = net.conv(block + ".conv1", ready, spec.expansion * out, 1);
  x = net.relu(block + ".relu2", net.bn(block + ".bn2", x));
  x = net.active_shift(block + ".shift2", x, stride);
  x = net.conv(block + ".conv2", x, out, 1);
  const bool same = stride == 1 && net.channels(from) == out;
  return net.add(block + ".add", x, same ? from : net.conv(block + ".downsample.0", ready, out, 1, stride));
}

Graph active_shift_resnet(const ArchSpec& spec, int64_t stem_stride, int first_layer,
                          const std::vector<ResidualStage>& stages) {
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), spec.width, 3, stem_stride);
  x = add_stages(net, spec, active_shift_module, stages, x, first_layer);
  net.head(net.relu("relu", net.bn("bn", x)), spec.classes);
  return net.take();
}

}  // namespace

Graph cifar_asresnet(const ArchSpec& spec) {
  return active_shift_resnet(spec, 1, 1, cifar_stages(spec));
}

Graph imagenet_asresnet_w(const ArchSpec& spec) {
  return active_shift_resnet(spec, 2, 0, imagenet_w_stages(spec));
}

}  // namespace onetap
