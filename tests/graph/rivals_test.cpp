// The rivals as methods and ops: their text and JSON, and what becomes of a network that is given one.
#include "onetap/graph/json.h"
#include "onetap/graph/method.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/support/support.h"

#include <algorithm>

namespace onetap {
namespace {

using testing::expect_error;

const std::string kRivals =
    "onetap-net 1\n"
    "network rivals\n"
    "x = input 3x8x8\n"
    "conv1 = conv x out=18 kernel=3 pad=1 method=bc\n"
    "shift2 = shift conv1 kernel=3\n"
    "conv2 = conv shift2 out=6 method=bwn scale=layer\n"
    "shift3 = shift conv2 kernel=1x3 dilation=2 counts=1,0,5\n"
    "shift4 = activeshift shift3 stride=2\n"
    "shift5 = activeshift shift4\n"
    "conv5 = conv shift5 out=6 kernel=3 pad=1 groups=6 bias=1 method=bwn scale=filter\n"
    "conv6 = conv conv5 out=6 kernel=3 pad=1 bias=1 method=random-taps taps=2 share=3\n"
    "conv7 = conv conv6 out=6 kernel=3 pad=1 method=magnitude taps=1 share=1\n"
    "conv8 = conv conv7 out=6 bias=1 method=binary\n"
    "pool = gap conv8\n"
    "fc1 = linear pool out=20 method=bc\n"
    "fc2 = linear fc1 out=10 bias=0 method=bwn scale=filter\n"
    "fc3 = linear fc2 out=10 method=binary\n"
    "output fc3\n";

TEST(RivalText, ReadsAndWritesItsOwnForm) {
  const Graph graph = parse_network(kRivals);
  EXPECT_EQ(network_text(graph), kRivals);
  EXPECT_TRUE(graph.node("shift2").counts.empty());
  EXPECT_EQ(graph.node("shift2").shape, (Shape{18, 8, 8}));
  EXPECT_EQ(graph.node("shift3").counts, (std::vector<int64_t>{1, 0, 5}));
  EXPECT_EQ(graph.node("shift3").kernel, (Extent2{1, 3}));
  EXPECT_EQ(graph.node("shift3").dilation, (Extent2{2, 2}));
  EXPECT_EQ(graph.node("shift4").shape, (Shape{6, 4, 4}));
  EXPECT_EQ(graph.node("conv1").method.name(), "bc");
  EXPECT_EQ(graph.node("conv5").method.word("scale"), "filter");
  EXPECT_EQ(graph.node("fc2").method.word("scale"), "filter");
  EXPECT_EQ(graph.node("conv8").method.name(), "binary");
}

TEST(RivalText, JsonHoldsTheSame) {
  const Graph graph = parse_network(kRivals);
  EXPECT_TRUE(parse_graph_json(graph_json(graph), "test") == graph);
}

TEST(RivalText, ASizeThatTheStrideDoesNotDivideIsRoundedUp) {
  const Graph graph = parse_network("onetap-net 1\nx = input 2x7x8\ns = activeshift x stride=3x2\n");
  EXPECT_EQ(graph.node("s").shape, (Shape{2, 3, 4}));  // (H - 1) / s + 1
}

void expect_refused(const std::string& lines, const std::string& why) {
  expect_error(ErrorKind::kUsage, why, [&] { parse_network("onetap-net 1\nx = input 3x8x8\n" + lines); });
}

TEST(RivalText, SaysWhatIsWrong) {
  expect_refused("s = shift x kernel=2\n", "s: expected a kernel with a centre, got 2x2");
  expect_refused("s = shift x kernel=3x4\n", "expected a kernel with a centre, got 3x4");
  expect_refused("s = shift x kernel=3 stride=2\n", "shift has no 'stride'");
  expect_refused("s = shift x kernel=3 counts=1,1,1\n", "expected 9 counts for a 3x3 kernel, got 3");
  expect_refused("s = shift x kernel=1x3 counts=1,1,2\n", "expected counts of 3 channels in all, got 4");
  expect_refused("s = shift x kernel=1x3 counts=1,1,0\n", "expected counts of 3 channels in all, got 2");
  expect_refused("s = shift x kernel=1x3 counts=1,9,1\n", "expected every count in 0..3, got 9");
  expect_refused("s = shift x kernel=1x3 counts=1,,1\n", "expected a whole number for counts, got ''");
  expect_refused("s = shift x kernel=1x3 counts=4,-1,0\n", "expected a whole number for counts, got '-1'");
  expect_refused("s = shift x kernel=1x3 counts=1099511627777,0,0\n", "expected a whole number for counts");
  expect_refused("s = activeshift x kernel=3\n", "activeshift has no 'kernel'");
  expect_refused("s = activeshift x stride=0\n", "expected stride in 1..64, got 0");
  expect_refused("p = gap x\ns = activeshift p\n", "expected an image C x H x W");
  expect_refused("p = gap x\ns = shift p\n", "expected an image C x H x W");
  expect_refused("c = conv x out=4 kernel=3 pad=1 method=shift\n", "method 'shift' stands for other nodes");
  expect_refused("c = conv x out=4 kernel=3 pad=1 method=active-shift\n",
                 "method 'active-shift' stands for other nodes");
  expect_refused("c = conv x out=4 method=random-taps\n", "needs a kernel with more than one position");
  expect_refused("c = conv x out=4 method=bc scale=filter\n", "scale needs method=bwn");
  expect_refused("c = conv x out=4 method=bwn scale=row\n", "expected scale=layer or scale=filter, got 'row'");
  expect_refused("p = gap x\nf = linear p out=4 method=sal\n", "f: a linear cannot have the method 'sal'");
  expect_refused("p = gap x\nf = linear p out=4 method=shift\n", "f: a linear cannot have the method 'shift'");
  expect_refused("p = gap x\nf = linear p out=4 method=random-taps\n", "a linear cannot have the method 'random-taps'");
}

// `binary` is what is left of bc and bwn: a network file may say it, but nobody trains by it.
TEST(RivalMethods, BinaryIsNoMethodOfTraining) {
  const std::vector<std::string> names = method_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "binary"), 0);
  expect_error(ErrorKind::kUsage, "got 'binary'", [] { Method("binary"); });
  EXPECT_EQ(find_frozen_method("bc"), nullptr);
  for (const char* name : {"bc", "bwn"}) {
    EXPECT_NE(find_frozen_method(find_method(name)->frozen_method), nullptr) << name;
  }
}

Graph with_method(const std::string& arch, const std::string& method, const std::string& layers = "",
                  int64_t kernel = 3) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = 8;
  spec.kernel = kernel;
  Graph graph = build_network(spec);
  apply_method(graph, Method(method), layers);
  return graph;
}

std::vector<std::string> names_of(const Graph& graph, Op op) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op == op) names.push_back(node.name);
  }
  return names;
}

bool has_spatial_conv_but_the_first(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op == Op::kConv && node.name != "conv1" && node.kernel.area() > 1;
  });
}

TEST(RivalMethods, ShiftPutsAShiftBeforeAPointwiseConvolution) {
  for (const int64_t kernel : {3, 5}) {
    const Graph graph = with_method("resnet20", "shift", "", kernel);
    const std::vector<std::string> shifts = names_of(graph, Op::kShift);
    ASSERT_EQ(shifts.size(), 18u);  // two a block, nine blocks
    EXPECT_EQ(shifts.front(), "layer1.0.shift1");
    EXPECT_EQ(shifts.back(), "layer3.2.shift2");
    EXPECT_FALSE(has_spatial_conv_but_the_first(graph));
    const Node& shift = graph.node("layer2.0.shift1");
    const Node& conv = graph.node("layer2.0.conv1");
    EXPECT_EQ(shift.kernel, (Extent2{kernel, kernel}));
    EXPECT_EQ(shift.inputs, (std::vector<std::string>{"layer1.2.relu2"}));
    EXPECT_EQ(shift.shape, (Shape{8, 32, 32}));
    EXPECT_EQ(conv.inputs, (std::vector<std::string>{"layer2.0.shift1"}));
    EXPECT_EQ(conv.kernel, (Extent2{1, 1}));
    EXPECT_EQ(conv.stride, (Extent2{2, 2}));  // the stride stays with the convolution
    EXPECT_EQ(conv.padding, (Extent2{0, 0}));
    EXPECT_EQ(conv.shape, (Shape{16, 16, 16}));
    EXPECT_TRUE(conv.method.is_dense());
    EXPECT_EQ(graph.node("conv1").kernel, (Extent2{kernel, kernel}));
    EXPECT_EQ(graph.output(), "fc");
    EXPECT_TRUE(parse_network(network_text(graph)) == graph);
  }
}

TEST(RivalMethods, ActiveShiftTakesTheStride) {
  const Graph graph = with_method("resnet20", "active-shift");
  ASSERT_EQ(names_of(graph, Op::kActiveShift).size(), 18u);
  EXPECT_FALSE(has_spatial_conv_but_the_first(graph));
  const Node& shift = graph.node("layer2.0.shift1");
  EXPECT_EQ(shift.stride, (Extent2{2, 2}));
  EXPECT_EQ(shift.shape, (Shape{8, 16, 16}));
  EXPECT_EQ(graph.node("layer2.0.conv1").stride, (Extent2{1, 1}));
  EXPECT_EQ(graph.node("layer2.0.conv1").shape, (Shape{16, 16, 16}));
  EXPECT_EQ(graph.node("layer2.0.downsample.0").stride, (Extent2{2, 2}));
  EXPECT_TRUE(parse_network(network_text(graph)) == graph);
}

// Of a bottleneck the convolution in the middle alone.
TEST(RivalMethods, BottlenecksShiftInTheMiddle) {
  for (const char* method : {"shift", "active-shift"}) {
    const Graph graph = with_method("resnet50-cifar", method);
    const std::vector<std::string> shifts =
        names_of(graph, std::string(method) == "shift" ? Op::kShift : Op::kActiveShift);
    ASSERT_EQ(shifts.size(), 16u);
    for (const std::string& name : shifts) EXPECT_EQ(name.substr(name.size() - 7), ".shift2");
    EXPECT_FALSE(has_spatial_conv_but_the_first(graph));
    EXPECT_EQ(graph.node("layer4.2.conv3").shape, (Shape{256, 4, 4}));
  }
}

TEST(RivalMethods, PatternsChooseWhatIsRewritten) {
  const Graph graph = with_method("resnet20", "shift", "layer3.*");
  EXPECT_EQ(names_of(graph, Op::kShift).size(), 6u);
  EXPECT_EQ(graph.node("layer1.0.conv1").kernel, (Extent2{3, 3}));
  const Graph with_stem = with_method("resnet20", "shift", "*");
  EXPECT_EQ(names_of(with_stem, Op::kShift).front(), "shift1");
  EXPECT_EQ(with_stem.node("shift1").shape, (Shape{3, 32, 32}));
}

TEST(RivalMethods, RefusesToReplaceWhatAShiftCannot) {
  const auto refused = [](const std::string& conv) {
    Graph graph = parse_network("onetap-net 1\nx = input 4x8x8\na = conv x out=4 kernel=3 pad=1\nb = conv a " + conv);
    expect_error(ErrorKind::kUsage, "b: a shift replaces convolutions with odd kernels, same padding and one group",
                 [&] { apply_method(graph, Method("shift"), ""); });
    EXPECT_NE(graph.find("b"), nullptr) << "a refused network must not change";
    EXPECT_EQ(graph.find("b_shift"), nullptr);
  };
  refused("out=4 kernel=3\n");
  refused("out=4 kernel=2 pad=1\n");
  refused("out=4 kernel=3 pad=1 groups=2\n");
  refused("out=4 kernel=3 pad=1 dilation=2\n");
  Graph dilated = parse_network(
      "onetap-net 1\nx = input 4x8x8\na = conv x out=4 kernel=3 pad=1\nb = conv a out=4 kernel=3 pad=2 dilation=2 "
      "bias=1\nc = relu b\n");
  apply_method(dilated, Method("shift"), "");
  EXPECT_EQ(dilated.node("b_shift").dilation, (Extent2{2, 2}));
  EXPECT_EQ(dilated.node("b").dilation, (Extent2{1, 1}));
  EXPECT_TRUE(dilated.node("b").bias);
}

// BinaryConnect and BWN take every layer with weights: the stem, the shortcuts and the classifier, too.
TEST(RivalMethods, BinaryWeightsAreEverywhere) {
  const Graph graph = with_method("resnet20", "bwn");
  int layers = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConv && node.op != Op::kLinear) continue;
    EXPECT_EQ(node.method.name(), "bwn") << node.name;
    ++layers;
  }
  EXPECT_EQ(layers, 19 + 2 + 1);
  EXPECT_EQ(method_summary(graph), "bwn scale=layer");
  const Graph but_the_ends = with_method("resnet20", "bc", "!conv1,!fc");
  EXPECT_TRUE(but_the_ends.node("conv1").method.is_dense());
  EXPECT_TRUE(but_the_ends.node("fc").method.is_dense());
  EXPECT_EQ(but_the_ends.node("layer2.0.downsample.0").method.name(), "bc");
  expect_error(ErrorKind::kUsage, "no layer with weights of resnet20 matches 'relu'",
               [] { with_method("resnet20", "bc", "relu"); });
}

TEST(RivalMethods, FixedTapsAreWhereShiftAttentionIs) {
  for (const char* method : {"random-taps", "magnitude"}) {
    const Graph graph = with_method("resnet20", method);
    const auto pruned =
        std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.is_pruned(); });
    EXPECT_EQ(pruned, 18) << method;
    EXPECT_TRUE(graph.node("conv1").method.is_dense());
    EXPECT_FALSE(has_soft_form(graph));
  }
}

// The zoo's shift networks have no k x k convolution behind the stem.
TEST(RivalMethods, NetworksWithoutKxKConvolutionsSaySo) {
  for (const char* arch : {"shiftresnet20", "asresnet", "shiftnet-b"}) {
    NetSpec spec;
    spec.arch = arch;
    Graph graph = build_network(spec);
    expect_error(ErrorKind::kUsage, "(--method conv trains it as it is)",
                 [&] { apply_method(graph, Method("sal"), ""); });
    apply_method(graph, Method("conv"), "");
    EXPECT_FALSE(has_methods(graph));
    apply_method(graph, Method("bc"), "");
    EXPECT_TRUE(has_methods(graph));
  }
}

}  // namespace
}  // namespace onetap
