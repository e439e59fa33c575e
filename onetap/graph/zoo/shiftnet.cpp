// ShiftNet-A and -B for ImageNet (Wu et al.): A has w = 32, B half of it.
#include "onetap/graph/zoo/architectures.h"
#include "onetap/graph/zoo/builder.h"

namespace onetap {
namespace {

struct Group {
  int64_t kernel;                        // of its shifts
  int64_t expansion, expansion_of_rest;  // of the module with stride 2, and of the others
  int64_t width, modules;
};

// Batch norm, ReLU, 1x1, shift, batch norm, ReLU, 1x1.
std::string residue(Builder& net, const std::string& block, const std::string& from, const Group& group,
                    int64_t expansion, int64_t out, int64_t stride) {
  std::string x = net.relu(block + ".relu1", net.bn(block + ".bn1", from));
  x = net.shift(block + ".shift1", net.conv(block + ".conv1", x, expansion * out, 1), group.kernel);
  x = net.relu(block + ".relu2", net.bn(block + ".bn2", x));
  return net.conv(block + ".conv2", x, out, 1, stride);
}

// The channels that the input lacks, beside the input at half its size.
std::string widening_module(Builder& net, const std::string& block, const std::string& from, const Group& group) {
  const std::string halved = net.avg_pool(block + ".avgpool", from, 3, 2, 1);
  const int64_t missing = group.width - net.channels(from);
  return net.concat(block + ".concat", {residue(net, block, from, group, group.expansion, missing, 2), halved});
}

std::string residual_module(Builder& net, const std::string& block, const std::string& from, const Group& group) {
  return net.add(block + ".add", residue(net, block, from, group, group.expansion_of_rest, group.width, 1), from);
}

}  // namespace

Graph imagenet_shiftnet(const ArchSpec& spec) {
  const int64_t w = spec.width;
  const Group groups[] = {{5, 4, 4, 2 * w, 5}, {5, 4, 3, 4 * w, 6}, {3, 3, 2, 8 * w, 7}, {3, 2, 1, 16 * w, 3}};
  Builder net(spec.name);
  std::string x = net.conv("conv1", net.input(spec.image), w, 7, 2);
  int layer = 1;
  for (const Group& group : groups) {
    for (int64_t i = 0; i < group.modules; ++i) {
      const std::string block = "layer" + std::to_string(layer) + "." + std::to_string(i);
      x = i == 0 ? widening_module(net, block, x, group) : residual_module(net, block, x, group);
    }
    ++layer;
  }
  net.head(net.relu("relu", net.bn("bn", x)), spec.classes);
  return net.take();
}

}  // namespace onetap
