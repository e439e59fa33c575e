#include "onetap/graph/zoo/architectures.h"
#include "onetap/graph/zoo/zoo.h"

namespace onetap {
namespace {

ZooEntry arch_row(const char* name, std::vector<std::string> spellings, Graph (*build)(const ArchSpec&), int64_t width,
                  const char* summary) {
  ZooEntry row;
  row.name = name;
  row.spellings = std::move(spellings);
  row.build = build;
  row.default_width = width;
  row.summary = summary;
  return row;
}

ZooEntry for_imagenet(ZooEntry row) {
  row.default_classes = 1000;
  row.default_image = {3, 224, 224};
  return row;
}

// One of the paper's own, whose k x k convolutions are for Shift Attention Layers.
ZooEntry residual_row(ZooEntry row) {
  row.default_kernel = 3;
  row.has_shortcut_a = true;
  row.usual_method = "sal";
  return row;
}

ZooEntry resnet_row() {
  ZooEntry row = residual_row(arch_row("resnet20, 32, 44, 56, 110", {"resnet"}, cifar_resnet, 16,
                                       "CIFAR ResNet of depth 6n+2, basic blocks of w, 2w, 4w channels"));
  row.depth = ZooEntry::Depth::kAppended;
  return row;
}

ZooEntry resnet50_row() {
  ZooEntry row = residual_row(arch_row("resnet50-cifar", {"resnet50-cifar"}, cifar_resnet50, 64,
                                       "ResNet-50 for CIFAR, bottleneck blocks, planes w to 8w"));
  row.default_classes = 100;
  return row;
}

ZooEntry resnet_w_row() {
  return residual_row(for_imagenet(arch_row("resnet-w", {"resnet-w"}, imagenet_resnet_w, 64,
                                            "ResNet-w for ImageNet, basic blocks, stride-2 stem, widths w to 8w")));
}

ZooEntry shiftresnet_row() {
  ZooEntry row = arch_row("shiftresnet20, 56, 110", {"shiftresnet"}, cifar_shiftresnet, 16,
                          "ShiftResNet for CIFAR, depth 6n+2: 1x1, fixed shift, 1x1");
  row.depth = ZooEntry::Depth::kAppended;
  row.default_kernel = 3;
  row.default_expansion = 1;
  row.has_shortcut_a = true;
  return row;
}

ZooEntry shiftnet_row(const char* name, int64_t width, const char* summary) {
  return for_imagenet(arch_row(name, {name}, imagenet_shiftnet, width, summary));
}

ZooEntry asresnet_row() {
  ZooEntry row = arch_row("asresnet", {"asresnet", "as-resnet"}, cifar_asresnet, 88,
                          "AS-ResNet [w x E] for CIFAR, depth 6n+2 (20): 1x1, active shift, 1x1");
  row.depth = ZooEntry::Depth::kOptional;
  row.default_expansion = 1;
  return row;
}

ZooEntry asresnet_w_row() {
  ZooEntry row = for_imagenet(arch_row("asresnet-w", {"asresnet-w", "as-resnet-w"}, imagenet_asresnet_w, 32,
                                       "AS-ResNet-w for ImageNet, active shifts in the stages of resnet-w"));
  row.default_expansion = 1;
  return row;
}

ZooEntry mobilenetv2_row() {
  ZooEntry row = arch_row("mobilenetv2", {"mobilenetv2", "mobilenetv2-cifar"}, cifar_mobilenetv2, 32,
                          "MobileNetV2 for CIFAR, depthwise convolutions in inverted residual blocks");
  row.default_kernel = 3;
  return row;
}

ZooEntry squeezenet_row() {
  return arch_row("squeezenet", {"squeezenet", "squeezenet-cifar"}, cifar_squeezenet, 96,
                  "SqueezeNet for CIFAR, fire modules");
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = {
      resnet_row(),
      resnet50_row(),
      resnet_w_row(),
      shiftresnet_row(),
      shiftnet_row("shiftnet-a", 32, "ShiftNet-A for ImageNet, fixed shifts of 5x5 and 3x3, widths w to 16w"),
      shiftnet_row("shiftnet-b", 16, "ShiftNet-B for ImageNet: half of A's channels"),
      asresnet_row(),
      asresnet_w_row(),
      mobilenetv2_row(),
      squeezenet_row(),
  };
  return entries;
}

}  // namespace onetap
