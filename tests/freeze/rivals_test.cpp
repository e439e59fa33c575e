// Every method from a module to a file to the executors: what was trained is what runs.
#include "onetap/freeze/freeze.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/model.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/tap_file.h"
#include "tests/freeze/compare.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

struct Case {
  const char* name;
  Method method;
};

std::vector<Case> all_cases() {
  return {{"random-taps", Method("random-taps").set("taps", int64_t{2}).set("share", int64_t{3})},
          {"magnitude", Method("magnitude")},
          {"shift", Method("shift")},
          {"active-shift", Method("active-shift")},
          {"bc", Method("bc")},
          {"bwn", Method("bwn")},
          {"bwn filter", Method("bwn").set("scale", std::string("filter"))}};
}

// Largest difference of the fast runtime from the reference executor, in parts of the largest output.
double fast_difference(const TapNet& net) {
  const auto x = torch::randn(net.graph.input().shape);
  const auto expected = run_reference(net, x.data_ptr<float>());
  Session session(std::make_shared<const Model>(net));
  std::vector<float> got(expected.size());
  session.run(x.data_ptr<float>(), 1, got.data());
  double largest = 0, scale = 1e-6;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(got[i]) - expected[i]));
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
  }
  return largest / scale;
}

TEST(FrozenRivals, EqualWhatWasTrained) {
  torch::manual_seed(61);
  for (const Case& c : all_cases()) {
    nn::GraphModule module(testing::small_resnet(c.method));
    testing::disturb(module);
    const TapNet net = parse_tap(tap_bytes(freeze(module)), "test");
    EXPECT_LT(testing::difference(module, net), 1e-4) << c.name;
    EXPECT_LT(fast_difference(net), 1e-4) << c.name;
  }
}

TEST(FrozenRivals, HalfPrecisionIsNear) {
  torch::manual_seed(62);
  for (const Case& c : all_cases()) {
    nn::GraphModule module(testing::small_resnet(c.method));
    testing::disturb(module);
    const TapNet net = parse_tap(tap_bytes(freeze(module, WeightType::kF16)), "test");
    EXPECT_LT(testing::difference(module, net), 2e-2) << c.name;
  }
}

// A batch norm between, another reader: shifts that stay ops of their own. Binary layers with and without a bias.
TEST(FrozenRivals, NetworksOfTheirOps) {
  torch::manual_seed(63);
  nn::GraphModule module(parse_network(
      "onetap-net 1\nx = input 3x9x7\nc = conv x out=20 kernel=3 pad=1 bias=1 method=bwn scale=filter\ns = shift c "
      "kernel=5\n"
      "b = bn s\nr = relu b\na = activeshift r stride=2\nd = conv a out=20 kernel=1 method=bc\nt = shift d kernel=3 "
      "dilation=2\n"
      "u = conv t out=12 kernel=1\nv = conv t out=12 kernel=3 pad=1 method=random-taps\nw = add u v\np = gap w\n"
      "fc = linear p out=5 method=bc\n"));
  testing::disturb(module);
  const TapNet net = parse_tap(tap_bytes(freeze(module)), "test");
  EXPECT_LT(testing::difference(module, net), 1e-4);
  EXPECT_LT(fast_difference(net), 1e-4);
}

TEST(FrozenRivals, BinaryLayersHaveOneMagnitudeAnOutput) {
  torch::manual_seed(64);
  nn::GraphModule module(testing::small_resnet(Method("bwn")));
  testing::disturb(module);
  const TapNet net = freeze(module);
  for (const char* name : {"conv1", "layer2.0.conv1", "layer2.0.downsample.0", "fc"}) {
    const Node& node = net.graph.node(name);
    EXPECT_EQ(node.method.name(), "binary") << name;
    const Tensor& weight = net.tensors(node).weight;
    const size_t of_output = weight.count() / static_cast<size_t>(node.out);
    for (size_t i = 0; i < weight.count(); ++i) {
      ASSERT_EQ(std::abs(weight.data<float>()[i]), std::abs(weight.data<float>()[i / of_output * of_output])) << name;
    }
  }
}

}  // namespace
}  // namespace onetap
