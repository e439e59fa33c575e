#include "onetap/graph/zoo/zoo.h"

#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "tests/support/support.h"

#include <algorithm>

namespace onetap {
namespace {

using testing::expect_error;

Graph build_arch(const std::string& arch, std::optional<int64_t> width = {}, std::optional<int64_t> kernel = {},
                 char shortcut = 'B') {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  spec.kernel = kernel;
  spec.shortcut = shortcut;
  return build_network(spec);
}

int64_t count_convs(const Graph& graph, int64_t kernel) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op == Op::kConv && node.kernel.h == kernel; });
}

// A CIFAR ResNet of depth 6n+2 has 6n+1 k x k convolutions and, with option B, two projections.
TEST(Zoo, CifarResNetsHaveTheirDepth) {
  for (int64_t depth : {8, 20, 32, 44, 56, 110}) {
    const Graph graph = build_arch("resnet" + std::to_string(depth));
    EXPECT_EQ(count_convs(graph, 3), depth - 1);
    EXPECT_EQ(count_convs(graph, 1), 2);
    EXPECT_EQ(count_convs(build_arch("resnet" + std::to_string(depth), 16, 3, 'A'), 1), 0);
    EXPECT_EQ(graph.node("avgpool").shape, (Shape{64}));
  }
}

TEST(Zoo, NamesFollowTorchvision) {
  const Graph graph = build_arch("resnet20", 16);
  for (const char* name : {"conv1", "bn1", "layer1.0.conv1", "layer1.0.bn2", "layer2.0.downsample.0",
                           "layer2.0.downsample.1", "layer3.2.conv2", "avgpool", "fc"}) {
    EXPECT_NE(graph.find(name), nullptr) << name;
  }
  EXPECT_EQ(graph.node("layer2.0.conv1").stride, (Extent2{2, 2}));
  EXPECT_EQ(graph.node("layer3.0.conv1").shape, (Shape{64, 8, 8}));
}

TEST(Zoo, FiveByFiveReplacesEveryThreeByThree) {
  const Graph graph = build_arch("resnet20", 16, 5);
  EXPECT_EQ(count_convs(graph, 5), 19);
  EXPECT_EQ(count_convs(graph, 3), 0);
  EXPECT_EQ(graph.node("layer3.2.conv2").shape, (Shape{64, 8, 8}));
}

TEST(Zoo, ResNet50ForCifar) {
  const Graph graph = build_arch("resnet50-cifar", 34);
  EXPECT_EQ(count_convs(graph, 3), 1 + 16);
  EXPECT_EQ(graph.node("layer4.2.conv3").shape, (Shape{34 * 32, 4, 4}));
  EXPECT_EQ(graph.node("layer2.0.conv1").stride, (Extent2{1, 1}));  // the stride sits on the 3x3
  EXPECT_EQ(graph.node("layer2.0.conv2").stride, (Extent2{2, 2}));
}

TEST(Zoo, ResNetWForImageNet) {
  const Graph graph = build_arch("resnet-w", 32);
  EXPECT_EQ(graph.node("conv1").shape, (Shape{32, 112, 112}));
  EXPECT_EQ(graph.node("layer0.0.relu2").shape, (Shape{32, 112, 112}));
  EXPECT_EQ(graph.node("layer1.2.relu2").shape, (Shape{32, 56, 56}));
  EXPECT_EQ(graph.node("layer4.2.relu2").shape, (Shape{256, 7, 7}));
  EXPECT_EQ(count_convs(graph, 3), 1 + 2 * (1 + 3 + 4 + 6 + 3));
  EXPECT_EQ(count_convs(graph, 1), 4);
}

TEST(Zoo, RefusesImpossibleNetworks) {
  expect_error(ErrorKind::kUsage, "expected a width in 1..65536 for resnet20, got 0",
               [] { build_arch("resnet20", 0); });
  expect_error(ErrorKind::kUsage, "expected kernel 3 or 5, got 4", [] { build_arch("resnet20", 16, 4); });
  expect_error(ErrorKind::kUsage, "expected shortcut A or B", [] { build_arch("resnet20", 16, 3, 'C'); });
  expect_error(ErrorKind::kUsage, "expected a depth of 6n+2", [] { build_arch("resnet21"); });
  expect_error(ErrorKind::kUsage, "'resnet50-cifar'", [] { build_arch("resnet50"); });
  expect_error(ErrorKind::kUsage, "did you mean 'resnet20'?", [] { build_arch("resent20"); });
}

TEST(Method, DefaultIsEverySpatialConvButTheFirst) {
  Graph graph = build_arch("resnet20", 16);
  const Method sal = sal_method();
  apply_method(graph, sal, "");
  EXPECT_TRUE(graph.node("conv1").method.is_dense());
  EXPECT_TRUE(graph.node("layer2.0.downsample.0").method.is_dense());
  EXPECT_EQ(graph.node("layer1.0.conv1").method, sal);
  EXPECT_EQ(prunable_convs(graph).size(), 18u);
}

TEST(Method, PatternsChooseLayers) {
  const auto chosen = [](const std::string& patterns) {
    Graph graph = build_arch("resnet20", 16);
    const Method sal = sal_method();
    apply_method(graph, sal, patterns);
    std::vector<std::string> names;
    for (const Node& node : graph.nodes()) {
      if (node.is_pruned()) names.push_back(node.name);
    }
    return names;
  };
  EXPECT_EQ(chosen("layer3.*").size(), 6u);
  EXPECT_EQ(chosen("layer1.*, layer3.0.conv1").size(), 7u);
  EXPECT_EQ(chosen("!layer1.*").size(), 12u);
  EXPECT_EQ(chosen("*").size(), 19u);
  EXPECT_EQ(chosen("*,!*.conv2").front(), "conv1");
  expect_error(ErrorKind::kUsage, "no k x k convolution of resnet20 matches 'layer9.*'", [&] { chosen("layer9.*"); });
  expect_error(ErrorKind::kUsage, "matches '*downsample*'", [&] { chosen("*downsample*"); });
}

}  // namespace
}  // namespace onetap
