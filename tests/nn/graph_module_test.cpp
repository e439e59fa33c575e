#include "onetap/nn/graph_module.h"

#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/nn/tensor_file.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

namespace onetap::nn {
namespace {

using ::onetap::testing::expect_error;
using ::onetap::testing::random_graph;
using ::onetap::testing::TempDir;

Graph small_resnet(bool sal, char shortcut = 'B') {
  return ::onetap::testing::small_resnet(sal ? sal_method() : Method{}, shortcut);
}

// The same network written by hand in LibTorch, reading the module's tensors by name.
torch::Tensor resnet8_by_hand(const GraphModule& module, torch::Tensor x) {
  const auto p = module->named_parameters();
  const auto b = module->named_buffers();
  const auto bn = [&](const torch::Tensor& y, const std::string& name) {
    return torch::batch_norm(y, p[name + ".weight"], p[name + ".bias"], b[name + ".running_mean"],
                             b[name + ".running_var"], false, 0.1, 1e-5, false);
  };
  const auto conv = [&](const torch::Tensor& y, const std::string& name, int64_t stride, int64_t pad) {
    return torch::conv2d(y, p[name + ".weight"], {}, stride, pad);
  };
  x = torch::relu(bn(conv(x, "conv1", 1, 1), "bn1"));
  for (int stage = 1; stage <= 3; ++stage) {
    const std::string name = "layer" + std::to_string(stage) + ".0.";
    const int64_t stride = stage == 1 ? 1 : 2;
    auto y = torch::relu(bn(conv(x, name + "conv1", stride, 1), name + "bn1"));
    y = bn(conv(y, name + "conv2", 1, 1), name + "bn2");
    if (stage > 1) x = bn(conv(x, name + "downsample.0", 2, 0), name + "downsample.1");
    x = torch::relu(x + y);
  }
  return torch::linear(x.mean({2, 3}), p["fc.weight"], p["fc.bias"]);
}

TEST(GraphModule, EqualsTheNetworkWrittenByHand) {
  torch::manual_seed(21);
  GraphModule module(small_resnet(false));
  module->eval();
  const auto x = torch::randn({3, 3, 32, 32});
  EXPECT_TRUE(torch::allclose(module->forward(x), resnet8_by_hand(module, x), 1e-5, 1e-5));
}

TEST(GraphModule, ParameterNamesFollowTheNodes) {
  GraphModule module(small_resnet(true));
  const auto parameters = module->named_parameters();
  for (const char* name :
       {"conv1.weight", "layer1.0.conv1.weight", "layer1.0.conv1.attention", "layer2.0.downsample.1.bias", "fc.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  EXPECT_FALSE(parameters.contains("conv1.attention"));
  EXPECT_TRUE(module->named_buffers().contains("bn1.running_mean"));
  EXPECT_TRUE(module->named_buffers().contains("bn1.num_batches_tracked"));
  EXPECT_EQ(module->trained_layers().size(), 6u);
  EXPECT_EQ(module->trained_layers()[0].name, "layer1.0.conv1");
}

TEST(GraphModule, RunsRandomGraphsWithTheShapesInferred) {
  torch::manual_seed(22);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = random_graph(seed);
    GraphModule module(graph);
    module->eval();
    const Shape& image = graph.input().shape;
    for (const AttentionMode mode : {AttentionMode::kSoft, AttentionMode::kHard}) {
      module->set_mode(mode);
      const auto y = module->forward(torch::randn({2, image[0], image[1], image[2]}));
      ASSERT_EQ(y.sizes(), at::IntArrayRef({2, 10})) << network_text(graph);
    }
    int64_t trainable = 0;
    for (const auto& parameter : module->parameters()) trainable += parameter.numel();
    ASSERT_EQ(static_cast<double>(trainable), count_network(graph, CountRules::kPlain).params) << network_text(graph);
  }
}

TEST(GraphModule, SubsampleTakesEverySecondPixelAndPadsChannels) {
  Graph graph("sub");
  graph.add(::onetap::testing::input_node({3, 5, 6}));
  Node node = default_node(Op::kSubsample);
  node.name = "s";
  node.inputs = {"x"};
  node.out = 6;
  node.stride = {2, 2};
  graph.add(node);
  GraphModule module(graph);
  const auto x = torch::randn({1, 3, 5, 6});
  const auto y = module->forward(x);
  ASSERT_EQ(y.sizes(), at::IntArrayRef({1, 6, 3, 3}));
  EXPECT_EQ(y[0][0].abs().sum().item<double>(), 0.0);  // 3 channels more: one in front, two behind
  EXPECT_EQ(y[0][4].abs().sum().item<double>(), 0.0);
  EXPECT_EQ(y[0][2][1][2].item<double>(), x[0][1][2][4].item<double>());
}

TEST(GraphModule, ShortcutATrains) {
  torch::manual_seed(23);
  GraphModule module(small_resnet(true, 'A'));
  module->forward(torch::randn({2, 3, 32, 32})).sum().backward();
  for (const auto& item : module->named_parameters()) EXPECT_TRUE(item.value().grad().defined()) << item.key();
}

TEST(GraphModule, TemperatureAndModeReachEveryLayer) {
  GraphModule module(small_resnet(true));
  module->set_temperature(0.25);
  {
    const ModeGuard guard(module, AttentionMode::kHard);
    for (const auto& sal : module->trained_layers()) EXPECT_EQ(sal.layer->mode(), AttentionMode::kHard);
  }
  for (const auto& sal : module->trained_layers()) {
    EXPECT_EQ(sal.layer->mode(), AttentionMode::kSoft);
    EXPECT_EQ(sal.layer->temperature(), 0.25);
  }
}

TEST(GraphModule, FanOutInitHasItsVariance) {
  torch::manual_seed(24);
  NetSpec spec;
  spec.arch = "resnet8";
  spec.width = 32;
  GraphModule module(build_network(spec), WeightInit::kFanOut);
  const auto weight = module->named_parameters()["layer3.0.conv2.weight"];
  EXPECT_NEAR(weight.std().item<double>(), std::sqrt(2.0 / (128 * 9)), 0.001);  // sqrt(2 / fan out)
}

TEST(TensorFile, ModuleStateRoundTrips) {
  const TempDir dir;
  torch::manual_seed(25);
  GraphModule a(small_resnet(true));
  a->forward(torch::randn({4, 3, 32, 32}));  // moves the running statistics
  write_tensors(dir / "m.safetensors", state_of(*a));
  GraphModule b(small_resnet(true));
  load_tensors(SafetensorsFile::read(dir / "m.safetensors"), state_of(*b), "m");
  const auto x = torch::randn({2, 3, 32, 32});
  a->eval();
  b->eval();
  EXPECT_TRUE(a->forward(x).equal(b->forward(x)));
}

TEST(TensorFile, ChannelsLastTensorsAreStoredRowMajor) {
  const TempDir dir;
  const auto tensor = torch::randn({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
  write_tensors(dir / "t", {{"t", tensor}});
  auto back = torch::zeros({2, 3, 4, 5});
  load_tensors(SafetensorsFile::read(dir / "t"), {{"t", back}}, "t");
  EXPECT_TRUE(back.equal(tensor));
}

TEST(TensorFile, RefusesTensorsThatDoNotFit) {
  const TempDir dir;
  write_tensors(dir / "t", {{"a", torch::zeros({2, 3})}});
  const auto file = SafetensorsFile::read(dir / "t");
  const auto load = [&](const NamedTensors& into) { load_tensors(file, into, "t"); };
  expect_error(ErrorKind::kData, "expected F32 [3, 2] for 'a', got F32 [2, 3] (t)", [&] {
    load({{"a", torch::zeros({3, 2})}});
  });
  expect_error(ErrorKind::kData, "expected F64", [&] { load({{"a", torch::zeros({2, 3}, torch::kFloat64)}}); });
  expect_error(ErrorKind::kData, "expected a tensor 'b'", [&] { load({{"b", torch::zeros({2, 3})}}); });
  expect_error(ErrorKind::kData, "expected 2 tensors, got 1", [&] {
    load({{"a", torch::zeros({2, 3})}, {"b", torch::zeros({1})}});
  });
}

}  // namespace
}  // namespace onetap::nn
