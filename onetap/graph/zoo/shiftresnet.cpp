// ShiftResNet for CIFAR, as Wu et al. published it: the ReLU stands before the sum, and none after it.
#include "onetap/graph/zoo/residual.h"

namespace onetap {
namespace {

std::string shift_module(Builder& net, const ArchSpec& spec, const std::string& block, const std::string& from,
                         int64_t out, int64_t stride) {
  std::string x = net.conv(block + ".conv1", from, spec.expansion * out, 1);
  x = net.relu(block + ".relu1", net.bn(block + ".bn1", x));
  x = net.shift(block + ".shift2", x, spec.kernel);
  x = net.conv(block + ".conv2", x, out, 1, stride);
  x = net.relu(block + ".relu2", net.bn(block + ".bn2", x));
  return net.add(block + ".add", x, shortcut(net, spec, block, from, out, stride));
}

}  // namespace

Graph cifar_shiftresnet(const ArchSpec& spec) {
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), spec.width, spec.kernel);
  x = net.relu("relu", net.bn("bn1", x));
  net.head(add_stages(net, spec, shift_module, cifar_stages(spec), x), spec.classes);
  return net.take();
}

}  // namespace onetap
