#include "onetap/graph/zoo/zoo.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/zoo/resnet.h"

namespace onetap {
namespace {

constexpr size_t kCifarResNet = 0, kResNet50Cifar = 1, kResNetW = 2;
constexpr std::string_view kResNetPrefix = "resnet";

// The depth in "resnet20", if the name has that form.
std::optional<int64_t> resnet_depth(std::string_view arch) {
  if (arch.substr(0, kResNetPrefix.size()) != kResNetPrefix) return std::nullopt;
  return parse_int(arch.substr(kResNetPrefix.size()));
}

[[noreturn]] void unknown(std::string_view arch) {
  const std::vector<std::string> names = {"resnet20",  "resnet32",       "resnet44", "resnet56",
                                          "resnet110", "resnet50-cifar", "resnet-w"};
  fail_usage("[zoo] unknown architecture '{}'{} ('onetap nets' lists them; a path to a network text file works too)",
             arch, did_you_mean(arch, names));
}

size_t entry_index(std::string_view arch) {
  if (arch == "resnet50-cifar") return kResNet50Cifar;
  if (arch == "resnet-w") return kResNetW;
  const auto depth = resnet_depth(arch);
  if (!depth) unknown(arch);
  if (*depth == 50) {
    fail_usage("[zoo] 'resnet50' is ambiguous: the bottleneck network for CIFAR is 'resnet50-cifar'");
  }
  if (*depth < 8 || *depth > 1202 || (*depth - 2) % 6 != 0) {
    fail_usage("[zoo] expected a depth of 6n+2 (8, 14, 20, ..., 1202), got '{}'", arch);
  }
  return kCifarResNet;
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = {
      {"resnet20, 32, 44, 56, 110",
       "CIFAR ResNet of depth 6n+2, basic blocks of w, 2w, 4w channels",
       16,
       10,
       {3, 32, 32}},
      {"resnet50-cifar", "ResNet-50 for CIFAR, bottleneck blocks, planes w to 8w", 64, 100, {3, 32, 32}},
      {"resnet-w", "ResNet-w for ImageNet, basic blocks, stride-2 stem, widths w to 8w", 64, 1000, {3, 224, 224}},
  };
  return entries;
}

const ZooEntry& find_architecture(std::string_view arch) {
  return zoo()[entry_index(arch)];
}

Graph build_network(const NetSpec& spec) {
  const size_t index = entry_index(spec.arch);
  const ZooEntry& entry = zoo()[index];
  ResNetSpec net;
  net.name = spec.arch;
  net.width = spec.width.value_or(entry.default_width);
  net.kernel = spec.kernel.value_or(3);
  net.shortcut = spec.shortcut;
  net.classes = spec.classes;
  net.image = spec.image.value_or(entry.default_image);
  if (net.width < 1 || net.width > 65536) {
    fail_usage("[zoo] expected a width in 1..65536 for {}, got {}", spec.arch, net.width);
  }
  if (net.kernel != 3 && net.kernel != 5) fail_usage("[zoo] expected kernel 3 or 5, got {}", net.kernel);
  if (net.shortcut != 'A' && net.shortcut != 'B') {
    fail_usage("[zoo] expected shortcut A or B, got '{}'", net.shortcut);
  }
  if (net.classes < 1) fail_usage("[zoo] expected at least 1 class, got {}", net.classes);
  switch (index) {
    case kResNet50Cifar:
      return cifar_resnet50(net);
    case kResNetW:
      return imagenet_resnet_w(net);
    default:
      return cifar_resnet(net, *resnet_depth(spec.arch));
  }
}

}  // namespace onetap
