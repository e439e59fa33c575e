// The rivals' architectures against their published definitions, layer by layer where they are unusual.
#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/support/support.h"

#include <algorithm>

namespace onetap {
namespace {

using testing::expect_error;

Graph build(const std::string& arch, std::optional<int64_t> expansion = {}) {
  NetSpec spec;
  spec.arch = arch;
  spec.expansion = expansion;
  return build_network(spec);
}

int64_t count_ops(const Graph& graph, Op op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) { return node.op == op; });
}

// Ops from a node back to `until`, along first inputs: "add conv relu ...".
std::string path_back(const Graph& graph, const std::string& from, const std::string& until) {
  std::string path;
  const Node* node = &graph.node(from);
  while (node->name != until) {
    path += (path.empty() ? "" : " ") + std::string(op_info(node->op).name);
    node = &graph.source(*node);
  }
  return path;
}

TEST(ShiftResNet, HasOneModuleForEveryBasicBlock) {
  for (const int64_t depth : {20, 56, 110}) {
    const Graph graph = build("shiftresnet" + std::to_string(depth), 6);
    EXPECT_EQ(count_ops(graph, Op::kShift), (depth - 2) / 2);
    EXPECT_EQ(count_ops(graph, Op::kConv), 1 + 2 * (depth - 2) / 2 + 2);
  }
  const Graph graph = build("shiftresnet20", 6);
  EXPECT_EQ(path_back(graph, "layer2.0.add", "layer1.2.add"), "add relu bn conv shift relu bn conv");
  EXPECT_EQ(graph.node("layer2.0.conv1").out, 6 * 32);  // E times the outputs, not the inputs
  EXPECT_EQ(graph.node("layer2.0.shift2").shape, (Shape{6 * 32, 32, 32}));
  EXPECT_EQ(graph.node("layer2.0.conv2").stride, (Extent2{2, 2}));
  EXPECT_EQ(graph.node("layer2.0.add").inputs[1], "layer2.0.downsample.1");
  EXPECT_EQ(graph.node("avgpool").inputs[0], "layer3.2.add");  // no ReLU after a sum
  EXPECT_EQ(build("shiftresnet20").node("layer1.0.conv1").out, 16);
}

TEST(ShiftNet, WidensByConcatenation) {
  const Graph a = build("shiftnet-a"), b = build("shiftnet-b");
  EXPECT_EQ(a.node("conv1").kernel, (Extent2{7, 7}));
  EXPECT_EQ(a.node("conv1").shape, (Shape{32, 112, 112}));
  EXPECT_EQ(count_ops(a, Op::kShift), 5 + 6 + 7 + 3);
  EXPECT_EQ(count_ops(a, Op::kConcat), 4);
  // Residue of the missing 32 channels with E = 4, beside the pooled 32.
  EXPECT_EQ(path_back(a, "layer1.0.conv2", "conv1"), "conv relu bn shift conv relu bn");
  EXPECT_EQ(a.node("layer1.0.conv1").shape, (Shape{4 * 32, 112, 112}));
  EXPECT_EQ(a.node("layer1.0.conv2").shape, (Shape{32, 56, 56}));
  EXPECT_EQ(a.node("layer1.0.avgpool").shape, (Shape{32, 56, 56}));
  const struct {
    const char* group;
    int64_t kernel, first_mid, other_mid, width, size;
  } groups[] = {{"layer1", 5, 128, 256, 64, 56},
                {"layer2", 5, 256, 384, 128, 28},
                {"layer3", 3, 384, 512, 256, 14},
                {"layer4", 3, 512, 512, 512, 7}};
  for (const auto& group : groups) {
    const std::string name = group.group;
    EXPECT_EQ(a.node(name + ".0.conv1").out, group.first_mid) << name;
    EXPECT_EQ(a.node(name + ".1.conv1").out, group.other_mid) << name;
    EXPECT_EQ(a.node(name + ".1.shift1").kernel, (Extent2{group.kernel, group.kernel})) << name;
    EXPECT_EQ(a.node(name + ".2.add").shape, (Shape{group.width, group.size, group.size})) << name;
    EXPECT_EQ(b.node(name + ".2.add").shape, (Shape{group.width / 2, group.size, group.size})) << name;
  }
  EXPECT_EQ(path_back(a, "avgpool", "layer4.2.add"), "gap relu bn");
}

TEST(AsResNet, NormalisesBeforeItsConvolutions) {
  const Graph graph = build("asresnet", 3);
  EXPECT_EQ(count_ops(graph, Op::kActiveShift), 9);
  EXPECT_EQ(graph.node("conv1").shape, (Shape{88, 32, 32}));
  EXPECT_EQ(path_back(graph, "layer1.0.add", "conv1"), "add conv activeshift relu bn conv relu bn");
  EXPECT_EQ(graph.node("layer1.0.add").inputs[1], "conv1");
  // The first 1x1 runs at full size: the stride sits in the shift. The projection reads the normalised input.
  EXPECT_EQ(graph.node("layer2.0.conv1").shape, (Shape{3 * 176, 32, 32}));
  EXPECT_EQ(graph.node("layer2.0.shift2").shape, (Shape{3 * 176, 16, 16}));
  EXPECT_EQ(graph.node("layer2.0.add").inputs[1], "layer2.0.downsample.0");
  EXPECT_EQ(graph.node("layer2.0.downsample.0").inputs[0], "layer2.0.relu1");
  EXPECT_EQ(path_back(graph, "avgpool", "layer3.2.add"), "gap relu bn");
  EXPECT_TRUE(build("as-resnet20").nodes() == build("asresnet").nodes());
  EXPECT_EQ(count_ops(build("asresnet56"), Op::kActiveShift), 27);
}

TEST(AsResNet, ForImageNetProjectsInGroupsOneToFour) {
  const Graph graph = build("asresnet-w");
  EXPECT_EQ(count_ops(graph, Op::kActiveShift), 1 + 3 + 4 + 6 + 3);
  EXPECT_EQ(graph.node("conv1").shape, (Shape{32, 112, 112}));
  EXPECT_EQ(graph.find("layer0.0.downsample.0"), nullptr);
  for (const char* name : {"layer1.0", "layer2.0", "layer3.0", "layer4.0"}) {
    EXPECT_NE(graph.find(std::string(name) + ".downsample.0"), nullptr) << name;
  }
  EXPECT_EQ(graph.node("layer4.2.add").shape, (Shape{256, 7, 7}));
}

TEST(MobileNetV2, HasItsSeventeenBlocks) {
  const Graph graph = build("mobilenetv2");
  EXPECT_EQ(count_ops(graph, Op::kConv), 2 + 3 * 17 + 4);
  EXPECT_EQ(count_ops(graph, Op::kAdd), 17 - 3);  // every block but those of stride 2
  const Node& depthwise = graph.node("layer3.0.conv2");
  EXPECT_EQ(depthwise.groups, 6 * 24);
  EXPECT_EQ(depthwise.out, 6 * 24);
  EXPECT_EQ(depthwise.stride, (Extent2{2, 2}));
  EXPECT_EQ(graph.node("layer3.0.bn3").shape, (Shape{32, 16, 16}));
  EXPECT_EQ(graph.node("layer1.0.conv1").shape, (Shape{32, 32, 32}));  // expansion 1 has its 1x1, too
  EXPECT_EQ(graph.node("layer1.0.add").inputs[1], "layer1.0.downsample.1");
  EXPECT_EQ(graph.node("layer2.1.add").inputs[1], "layer2.0.add");
  EXPECT_EQ(path_back(graph, "layer2.1.add", "layer2.0.add"), "add bn conv relu bn conv relu bn conv");
  EXPECT_EQ(graph.node("relu2").shape, (Shape{1280, 4, 4}));
  EXPECT_TRUE(build("mobilenetv2-cifar").nodes() == graph.nodes());
}

TEST(SqueezeNet, HasEightFireModules) {
  const Graph graph = build("squeezenet");
  EXPECT_EQ(count_ops(graph, Op::kConv), 1 + 3 * 8 + 1);
  EXPECT_EQ(count_ops(graph, Op::kMaxPool), 3);
  const struct {
    const char* name;
    Shape shape;
  } results[] = {{"maxpool1", {96, 16, 16}},  {"fire2.relu", {128, 16, 16}}, {"fire4.relu", {256, 16, 16}},
                 {"fire5.relu", {256, 8, 8}}, {"fire7.relu", {384, 8, 8}},   {"fire8.relu", {512, 8, 8}},
                 {"fire9.relu", {512, 4, 4}}, {"classifier", {10, 4, 4}},    {"avgpool", {10}}};
  for (const auto& result : results) EXPECT_EQ(graph.node(result.name).shape, result.shape) << result.name;
  EXPECT_EQ(path_back(graph, "fire2.relu", "maxpool1"), "relu concat bn conv relu bn conv");
  for (const Node& node : graph.nodes()) EXPECT_TRUE(node.op != Op::kConv || node.bias) << node.name;
  EXPECT_EQ(graph.output(), "avgpool");
  graph.check_classifier(10);
}

// Every row of the table builds, at any width, and survives being written.
TEST(Zoo, EveryArchitectureHasAWidthAndAText) {
  for (const ZooEntry& entry : zoo()) {
    for (std::string arch : entry.spellings) {
      if (entry.depth == ZooEntry::Depth::kAppended) arch += "20";
      SCOPED_TRACE(arch);
      EXPECT_EQ(&find_architecture(arch), &entry);
      for (const int64_t width : {int64_t{1}, int64_t{5}, entry.default_width}) {
        NetSpec spec;
        spec.arch = arch;
        spec.width = width;
        spec.classes = 7;
        const Graph graph = build_network(spec);
        graph.check_classifier(7);
        EXPECT_EQ(graph.input().shape, entry.default_image);
        EXPECT_EQ(graph.node("conv1").out, width);
        EXPECT_TRUE(parse_network(network_text(graph)) == graph);
      }
    }
  }
}

TEST(Zoo, RefusesSettingsThatAnArchitectureDoesNotHave) {
  const auto refused = [](const std::string& why, const NetSpec& spec) {
    expect_error(ErrorKind::kUsage, why, [&] { build_network(spec); });
  };
  NetSpec spec;
  spec.expansion = 2;
  for (const char* arch : {"resnet20", "mobilenetv2", "shiftnet-a", "squeezenet"}) {
    spec.arch = arch;
    refused(std::string(arch) + " has no expansion to set (shiftresnetN, asresnet, asresnet-w have)", spec);
  }
  spec.arch = "shiftresnet20";
  spec.expansion = 0;
  refused("expected an expansion in 1..64 for shiftresnet20, got 0", spec);
  spec.expansion = {};
  spec.kernel = 5;
  for (const char* arch : {"shiftnet-a", "asresnet", "squeezenet"}) {
    spec.arch = arch;
    refused(std::string(arch) + " has no kernel to set", spec);
  }
  spec.kernel = {};
  spec.shortcut = 'A';
  for (const char* arch : {"asresnet-w", "mobilenetv2", "squeezenet"}) {
    spec.arch = arch;
    refused(std::string(arch) + " has no shortcut A to set", spec);
  }
  expect_error(ErrorKind::kUsage, "did you mean 'shiftresnet20'?", [] { build("shiftresnet"); });
  expect_error(ErrorKind::kUsage, "did you mean 'squeezenet'?", [] { build("squeezenat"); });
  expect_error(ErrorKind::kUsage, "expected a depth of 6n+2", [] { build("shiftresnet51"); });
  expect_error(ErrorKind::kUsage, "expected a depth of 6n+2", [] { build("asresnet18"); });
}

}  // namespace
}  // namespace onetap
