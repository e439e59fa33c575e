#include "onetap/prune/cut_module.h"

#include "onetap/base/random.h"
#include "onetap/graph/uses.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/nn/tensor_file.h"
#include "tests/prune/net.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace onetap {
namespace {

using testing::net;

Graph resnet(const std::string& arch, char shortcut) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = 6;
  spec.shortcut = shortcut;
  return build_network(spec);
}

// Weights, statistics and norms that no channel has in common with another.
nn::GraphModule random_module(const Graph& graph) {
  torch::manual_seed(3);
  nn::GraphModule module(graph);
  const torch::NoGradGuard no_grad;
  for (auto [name, tensor] : nn::state_of(*module)) {
    const std::string what = name.substr(name.rfind('.') + 1);
    const bool is_norm = graph.node(name.substr(0, name.rfind('.'))).op == Op::kBatchNorm;
    if (what == "running_var") tensor.uniform_(0.5, 2);
    if (what == "running_mean") tensor.uniform_(-0.5, 0.5);
    if (is_norm && what == "weight") tensor.uniform_(0.5, 1.5);
    if (is_norm && what == "bias") tensor.uniform_(-0.5, 0.5);
  }
  module->eval();
  return module;
}

// About half of the channels of every layer that can lose some, another half each time.
ChannelPlan random_plan(const Graph& graph, uint32_t number) {
  ChannelPlan plan;
  uint32_t layer = 0;
  for (const std::string& conv : cuttable_convs(graph)) {
    Random random(number, Purpose::kTest, layer++);
    std::vector<int64_t>& kept = plan[conv];
    for (int64_t c = 0; c < graph.node(conv).out; ++c) {
      if (random.coin()) kept.push_back(c);
    }
    if (kept.empty()) kept.push_back(0);
  }
  return plan;
}

// The original, whose cut channels are made zero where their conv's batch norm gives them, or the conv itself.
torch::Tensor with_zeros(nn::GraphModule& module, const ChannelPlan& plan, const torch::Tensor& x) {
  const Uses uses(module->graph());
  std::map<std::string, torch::Tensor> masks;
  for (const auto& [name, kept] : plan) {
    const Node& conv = module->graph().node(name);
    const Node* reader = uses.only_reader(conv);
    const Node& last = reader != nullptr && reader->op == Op::kBatchNorm ? *reader : conv;
    torch::Tensor mask = torch::zeros({conv.out});
    for (const int64_t c : kept) mask[c] = 1;
    masks[last.name] = mask.view({1, -1, 1, 1});
  }
  module->set_editor([&](const Node& node, const torch::Tensor& value) {
    const auto found = masks.find(node.name);
    return found == masks.end() ? value : value * found->second;
  });
  const torch::Tensor y = module->forward(x);
  module->set_editor({});
  return y;
}

void expect_equal_to_zeros(const Graph& graph) {
  SCOPED_TRACE(graph.name());
  const torch::NoGradGuard no_grad;
  nn::GraphModule module = random_module(graph);
  const Shape& image = graph.input().shape;
  const torch::Tensor x = torch::randn({2, image[0], image[1], image[2]});
  const torch::Tensor whole = module->forward(x);
  for (uint32_t number = 0; number < 3; ++number) {
    const ChannelPlan plan = random_plan(graph, number);
    ASSERT_FALSE(plan.empty());
    nn::GraphModule smaller = cut_module(module, cut_channels(graph, plan));
    smaller->eval();
    const torch::Tensor expected = with_zeros(module, plan, x);
    const double scale = expected.abs().max().item<double>();
    EXPECT_LT((smaller->forward(x) - expected).abs().max().item<double>(), 1e-5 * scale);
    EXPECT_GT((whole - expected).abs().max().item<double>(), 1e-3 * scale);  // the cut channels did something
  }
  EXPECT_TRUE(torch::equal(module->forward(x), whole));  // it stays as it is
}

TEST(CutModule, ResidualNetworksEqualTheirChannelsMadeZero) {
  expect_equal_to_zeros(resnet("resnet8", 'A'));
  expect_equal_to_zeros(resnet("resnet8", 'B'));
  expect_equal_to_zeros(resnet("resnet50-cifar", 'B'));
}

// As SqueezeNet has them: convolutions with bias, one ReLU behind the concatenation.
TEST(CutModule, ConcatenationsEqualTheirChannelsMadeZero) {
  expect_equal_to_zeros(
      net("x = input 3x12x12\n"
          "conv1 = conv x out=7 kernel=3 pad=1 bias=1\n"
          "bn1 = bn conv1\n"
          "relu1 = relu bn1\n"
          "pool1 = maxpool relu1 kernel=2 stride=2\n"
          "fire.squeeze = conv pool1 out=5 bias=1\n"
          "fire.act = relu fire.squeeze\n"
          "fire.one = conv fire.act out=6 bias=1\n"
          "fire.bn1 = bn fire.one\n"
          "fire.three = conv fire.act out=6 kernel=3 pad=1 bias=1\n"
          "fire.bn3 = bn fire.three\n"
          "fire.both = concat fire.bn1 fire.bn3\n"
          "fire.relu = relu fire.both\n"
          "last = conv fire.relu out=10 bias=1\n"
          "pool = avgpool last kernel=6\n"
          "flat = flatten pool\n"));
}

TEST(CutModule, LinearAfterFlatteningEqualsItsChannelsMadeZero) {
  expect_equal_to_zeros(
      net("x = input 3x8x8\n"
          "conv1 = conv x out=5 kernel=3 pad=1\n"
          "bn1 = bn conv1\n"
          "relu1 = relu bn1\n"
          "pool = avgpool relu1 kernel=2 stride=2\n"
          "flat = flatten pool\n"
          "hidden = linear flat out=12\n"
          "act = relu hidden\n"
          "fc = linear act out=10\n"));
}

// Cut before a depthwise convolution, a channel is gone behind it, too, if what it makes of a zero is zero: no shift in
// its batch norm.
TEST(CutModule, DepthwiseConvolutionsLoseTheChannelsOfTheirInput) {
  expect_equal_to_zeros(
      net("x = input 3x8x8\n"
          "wide = conv x out=6\n"
          "act = relu wide\n"
          "deep = conv act out=12 kernel=3 pad=1 groups=6\n"
          "narrow = conv deep out=4\n"
          "pool = gap narrow\n"
          "fc = linear pool out=10\n"));
}

// Groups that lose channels alike: each output reads what stays of its own group.
TEST(CutModule, GroupsKeepTheirOwnInputs) {
  const Graph graph = net("x = input 3x4x4\na = conv x out=6\nb = conv a out=4 groups=2\nlast = conv b out=3\n");
  nn::GraphModule module = random_module(graph);
  const torch::NoGradGuard no_grad;
  const ChannelPlan plan = {{"a", {1, 2, 3, 5}}, {"b", {0, 3}}};
  nn::GraphModule smaller = cut_module(module, cut_channels(graph, plan));
  const torch::Tensor x = torch::randn({2, 3, 4, 4});
  const torch::Tensor expected = with_zeros(module, plan, x);
  EXPECT_LT((smaller->forward(x) - expected).abs().max().item<double>(), 1e-5);
  // 6 * 3 / 6 * 4 weights, 2 * 2 and 3 * 2.
  EXPECT_EQ(smaller->named_parameters()["b.weight"].sizes().vec(), (std::vector<int64_t>{2, 2, 1, 1}));
}

TEST(CutModule, StatisticsGoWithTheirChannels) {
  const Graph graph = resnet("resnet8", 'A');
  const nn::GraphModule module = random_module(graph);
  const nn::GraphModule smaller = cut_module(module, cut_channels(graph, {{"layer2.0.conv1", {3, 4, 11}}}));
  const auto before = module->named_buffers(), after = smaller->named_buffers();
  for (const char* name : {"layer2.0.bn1.running_mean", "layer2.0.bn1.running_var"}) {
    ASSERT_EQ(after[name].size(0), 3);
    for (const auto& [to, from] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 4}, {2, 11}}) {
      EXPECT_EQ(after[name][to].item<float>(), before[name][from].item<float>());
    }
  }
}

}  // namespace
}  // namespace onetap
