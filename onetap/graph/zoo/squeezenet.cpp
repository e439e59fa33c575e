// SqueezeNet for CIFAR. A width other than 96 scales every layer.
#include "onetap/graph/zoo/architectures.h"
#include "onetap/graph/zoo/builder.h"

namespace onetap {
namespace {

// Squeezed to few channels by a 1x1, then expanded by as many 1x1 as 3x3 filters.
std::string fire(Builder& net, const std::string& block, const std::string& from, int64_t squeeze, int64_t expand) {
  const auto normed = [&](const std::string& name, const std::string& input, int64_t out, int64_t kernel) {
    return net.bn(block + "." + name + "_bn", net.biased_conv(block + "." + name, input, out, kernel));
  };
  const std::string few = net.relu(block + ".squeeze_relu", normed("squeeze", from, squeeze, 1));
  const std::string pointwise = normed("expand1x1", few, expand, 1);
  const std::string spatial = normed("expand3x3", few, expand, 3);
  return net.relu(block + ".relu", net.concat(block + ".concat", {pointwise, spatial}));
}

}  // namespace

Graph cifar_squeezenet(const ArchSpec& spec) {
  const auto scaled = [&](int64_t channels) { return scaled_channels(channels, spec.width, 96); };
  Builder net(spec.name);
  int next = 2;  // fire modules are numbered from 2, as published
  std::string x = net.biased_conv("conv1", net.input(spec.image), scaled(96), 3);
  x = net.relu("relu1", net.bn("bn1", x));
  const auto pool = [&] { x = net.max_pool("maxpool" + std::to_string(next - 1), x, 2, 2); };
  const auto add_fire = [&](int64_t squeeze, int64_t expand) {
    x = fire(net, "fire" + std::to_string(next++), x, scaled(squeeze), scaled(expand));
  };
  pool();
  add_fire(16, 64);
  add_fire(16, 64);
  add_fire(32, 128);
  pool();
  add_fire(32, 128);
  add_fire(48, 192);
  add_fire(48, 192);
  add_fire(64, 256);
  pool();
  add_fire(64, 256);
  net.global_avg_pool("avgpool", net.biased_conv("classifier", x, spec.classes, 1));
  return net.take();
}

}  // namespace onetap
