// Module to freeze to file to reference executor, on networks nobody designed.
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/freeze/clear_dropped.h"
#include "onetap/freeze/freeze.h"
#include "onetap/freeze/verify.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/drop.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/tap_file.h"
#include "tests/freeze/compare.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

using testing::difference;
using testing::disturb;
using testing::expect_error;
using testing::random_graph;
using testing::TempDir;

TEST(RoundTrip, RandomNetworks) {
  torch::manual_seed(1);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    nn::GraphModule module(random_graph(seed));
    disturb(module);
    const std::string bytes = tap_bytes(freeze(module));
    const TapNet net = parse_tap(bytes, "test");
    EXPECT_LT(difference(module, net), 1e-4);
    // What `onetap count` says of the trained network before anything is frozen.
    const auto expected = static_cast<double>(tap_length(frozen_form(module->graph()).graph, WeightType::kF32));
    EXPECT_NEAR(static_cast<double>(bytes.size()), expected, 0.02 * expected);
  }
}

TEST(RoundTrip, ZooNetworks) {
  torch::manual_seed(2);
  const struct {
    const char* arch;
    int64_t width, kernel, image, taps;
    BlockShare share;
    char shortcut;
  } rows[] = {{"resnet20", 6, 3, 32, 1, 1, 'B'},      {"resnet8", 5, 3, 32, 2, 4, 'A'},
              {"resnet14", 4, 5, 32, 1, 3, 'B'},      {"resnet50-cifar", 3, 3, 32, 9, 2, 'B'},
              {"resnet20", 8, 3, 32, 1, {4, 4}, 'B'}, {"resnet8", 6, 3, 32, 1, BlockShare::kAllOutputs, 'B'},
              {"resnet8", 6, 3, 32, 2, {4, 4}, 'A'},  {"resnet8", 5, 5, 32, 1, {BlockShare::kAllOutputs, 4}, 'A'},
              {"resnet-w", 3, 3, 64, 1, 1, 'B'},      {"resnet8", 4, 3, 32, 0, 1, 'B'}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.arch);
    NetSpec spec;
    spec.arch = row.arch;
    spec.width = row.width;
    spec.kernel = row.kernel;
    spec.shortcut = row.shortcut;
    spec.image = Shape{3, row.image, row.image};
    Graph graph = build_network(spec);
    apply_method(graph, row.taps > 0 ? sal_method(row.taps, row.share) : Method{}, "");
    nn::GraphModule module(graph);
    disturb(module);
    EXPECT_LT(difference(module, parse_tap(tap_bytes(freeze(module)), "test")), 1e-4);
  }
}

// What networks from ONNX models have beside those of the zoo.
TEST(RoundTrip, OpsOfImportedNetworks) {
  torch::manual_seed(7);
  nn::GraphModule module(
      parse_network("onetap-net 1\nx = input 3x9x8\na = conv x out=6 kernel=3\nan = bn a eps=0.5\nb = relu6 an\n"
                    "c = hardswish b\nd = silu c\ne = pad d sides=0,1,2,0\nm = pad d sides=2,0,0,1 fill=lowest\n"
                    "n = maxpool m kernel=3\nnn = bn n eps=0.001\ng = gap nn\ns = linear g out=6\nh = hardsigmoid s\n"
                    "t = mul nn h\nu = sigmoid t\nv = mul u nn\nw = conv e out=6 kernel=3 method=sal\n"
                    "k = concat v w\np = gap k\nfc = linear p out=4\n"));
  disturb(module);
  const double with_eps = difference(module, parse_tap(tap_bytes(freeze(module)), "test"));
  EXPECT_LT(with_eps, 1e-4);
  // An eps is no decoration: with the usual one the network is another.
  Graph usual("usual");
  for (Node node : module->graph().nodes()) {
    node.epsilon = kBatchNormEpsilon;
    usual.add(node);
  }
  nn::GraphModule other(usual);
  nn::load_tensors(SafetensorsFile::parse(nn::tensor_bytes(nn::state_of(*module)), "test"), nn::state_of(*other),
                   "test");
  EXPECT_GT(difference(module, freeze(other)), 1e-3);
  // Gradients go through all of them.
  module->train();
  module->forward(torch::randn({4, 3, 9, 8})).sum().backward();
  for (const auto& parameter : module->parameters()) EXPECT_TRUE(parameter.grad().defined());
}

// Learned empty sets, with blocks of several sizes: 5 outputs in blocks of 4.
TEST(RoundTrip, EmptySets) {
  torch::manual_seed(5);
  NetSpec spec;
  spec.arch = "resnet8";
  spec.width = 5;
  for (const int64_t taps : {1, 2}) {
    Graph graph = build_network(spec);
    apply_method(graph, sal_method(taps, 4).set("density", 0.4), "");
    nn::GraphModule module(graph);
    disturb(module);
    const TapNet net = freeze(module);
    EXPECT_LT(difference(module, parse_tap(tap_bytes(net), "test")), 1e-4);
    // layer1.0.conv1: 2 blocks of outputs x 5 inputs are 10 sets, of which 4 stay.
    const auto& codes = net.layers.at("layer1.0.conv1").positions;
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 9), 6 * taps);
    const double kept = 1 - count_network(net.graph, CountRules::kPaper).empty;
    EXPECT_NEAR(kept, 0.4, 0.1);
    EXPECT_NEAR(count_network(graph, CountRules::kPaper).empty, 0.6, 0.02);
  }
}

// What was dropped is gone from the module too, and freezing it again gives zeros there.
TEST(RoundTrip, AModuleWithoutWhatWasDropped) {
  torch::manual_seed(6);
  for (const char* method : {"sal", "random-taps", "shift"}) {
    NetSpec spec;
    spec.arch = "resnet8";
    spec.width = 9;
    Graph graph = build_network(spec);
    apply_method(graph, Method(method), "");
    nn::GraphModule module(graph);
    disturb(module);
    TapNet net = freeze(module);
    const DropResult result = drop_weights(net, {0, 0.5});
    EXPECT_GT(result.dropped, 0) << method;
    EXPECT_GT(difference(module, net), 1e-3) << method;
    clear_dropped(module, net);
    EXPECT_LT(difference(module, net), 1e-4) << method;
    TapNet again = freeze(module);
    EXPECT_EQ(drop_weights(again, {}).dropped, result.dropped) << method;
    for (const auto& [name, tensors] : net.layers) EXPECT_EQ(again.layers.at(name).positions, tensors.positions);
  }
}

// Nine taps of a 3x3 kernel are all of it: the frozen network is the dense one.
TEST(RoundTrip, AllTapsAreTheDenseNetwork) {
  Graph graph("all");
  graph.add(testing::input_node({3, 9, 9}));
  Node conv = testing::conv_node("c", "x", 4, 3);
  conv.padding = {1, 1};
  conv.method = sal_method(9);
  graph.add(conv);
  Node pool = default_node(Op::kGlobalAvgPool);
  pool.name = "g";
  pool.inputs = {"c"};
  graph.add(pool);
  nn::GraphModule module(graph);
  const TapNet net = freeze(module);
  const auto x = torch::randn({1, 3, 9, 9});
  const auto expected =
      torch::conv2d(x, module->named_parameters()["c.weight"], {}, 1, 1).mean(at::IntArrayRef{2, 3}).flatten();
  const auto got = run_reference(net, x.data_ptr<float>());
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(got[static_cast<size_t>(i)], expected[i].item<float>(), 1e-5);
}

TEST(RoundTrip, HalfWeightsStayClose) {
  torch::manual_seed(3);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    nn::GraphModule module(random_graph(seed));
    disturb(module);
    const TapNet net = freeze(module, WeightType::kF16);
    EXPECT_TRUE(parse_tap(tap_bytes(net), "test").layers == net.layers);
    EXPECT_LT(difference(module, net), rounding_tolerance(WeightType::kF16)) << seed;
  }
}

// Logits that all prefer the centre leave the centre alone: in the file, and in its heat map's counts.
TEST(Freeze, AnAllCentreNetworkKeepsCentres) {
  nn::GraphModule module(testing::small_resnet(sal_method()));
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : module->named_parameters()) {
      if (item.key().find("attention") != std::string::npos) item.value().select(-1, 4).fill_(2.0);
    }
  }
  const TapNet net = parse_tap(tap_bytes(freeze(module)), "test");
  int layers = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kTapConv) continue;
    ++layers;
    std::vector<int64_t> centre(9, 0);
    centre[4] = node.out * in_channels(net.graph, node);
    EXPECT_EQ(kept_counts(net, node), centre) << node.name;
  }
  EXPECT_EQ(layers, 6);
}

TEST(Freeze, LeavesTheModuleAsItIs) {
  nn::GraphModule module(random_graph(7));
  std::vector<torch::Tensor> before;
  for (const auto& item : module->named_parameters()) before.push_back(item.value().clone());
  freeze(module);
  size_t i = 0;
  for (const auto& item : module->named_parameters()) EXPECT_TRUE(item.value().equal(before[i++]));
}

TEST(Verify, DamageIsToldFromRounding) {
  const auto stage = [](const char* name, double largest, double scale) {
    Stage made{name, {}, {}};
    made.from_before.largest = largest;
    made.from_before.scale = scale;
    return made;
  };
  // Soft to hard may differ as it likes; that is what pruning does.
  EXPECT_NO_THROW(
      check_stages({stage("soft", 0, 1), stage("hard", 3, 10), stage("folded", 1e-5, 10)}, WeightType::kF32));
  expect_error(ErrorKind::kCheck, "stage 'folded'",
               [&] { check_stages({stage("folded", 0.01, 10)}, WeightType::kF32); });
  EXPECT_NO_THROW(check_stages({stage("folded", 0.01, 10)}, WeightType::kF16));
  expect_error(ErrorKind::kCheck, "stage 'file'", [&] { check_stages({stage("file", 1e-7, 10)}, WeightType::kF32); });
  expect_error(ErrorKind::kCheck, "stage 'folded'",
               [&] { check_stages({stage("folded", std::nan(""), 10)}, WeightType::kF32); });
}

TEST(Verify, OutputsThatAreNotFiniteAreNamedByStage) {
  const DataSource source = open_data("shapes:train=8,test=6");
  VerifyOptions options;
  options.stream.view.size = source.image_size;
  options.stream.view.normalisation = source.normalisation;
  nn::GraphModule module(testing::small_resnet(sal_method()));
  StageCheck good(*source.test, options);
  good.trained(module);
  good.frozen("folded", freeze(module));
  EXPECT_EQ(good.stages().size(), 3u);

  const torch::NoGradGuard no_grad;
  torch::Tensor bias = module->named_parameters()["fc.bias"];
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    bias[1] = value;
    StageCheck check(*source.test, options);
    expect_error(ErrorKind::kFailure, "expected finite outputs of stage 'soft', got nan or inf",
                 [&] { check.trained(module); });
    EXPECT_TRUE(check.stages().empty());
  }
  // Weights that are finite, and sums that are not.
  bias.zero_();
  module->named_parameters()["fc.weight"].fill_(3e38);
  module->named_parameters()["conv1.weight"].fill_(100);
  StageCheck check(*source.test, options);
  expect_error(ErrorKind::kFailure, "expected finite outputs of stage 'folded', got nan or inf",
               [&] { check.frozen("folded", freeze(module)); });
}

}  // namespace
}  // namespace onetap
