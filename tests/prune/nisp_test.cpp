#include "onetap/prune/nisp.h"

#include "onetap/data/source.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/prune/inf_fs.h"
#include "tests/graph/small_nets.h"
#include "tests/prune/net.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

using testing::expect_error;
using testing::net;

TEST(RankCorrelation, OfValuesWithTies) {
  // Ranks of the second column: 1.5, 1.5, 3, 4. With those of the first, 1, 2, 3, 4, their covariance is
  // 1.5 + 0.5 + 0.25 + 2.25 = 4.5, their squares 5 and 4.5.
  const auto features =
      torch::tensor({{1.0, 7.0, -1.0, 5.0}, {2.0, 7.0, -8.0, 5.0}, {3.0, 8.0, -27.0, 5.0}, {4.0, 100.0, -64.0, 5.0}});
  const torch::Tensor r = rank_correlation(features);
  EXPECT_NEAR(r[0][1].item<double>(), 4.5 / std::sqrt(5 * 4.5), 1e-12);
  EXPECT_NEAR(r[0][2].item<double>(), -1, 1e-12);
  EXPECT_NEAR(r[1][1].item<double>(), 1, 1e-12);
  EXPECT_EQ(r[3].abs().sum().item<double>(), 0);  // constant
}

// Two features of standard deviations 1 and 1/2 (in parts of the larger) that agree in rank: A = [[a, a], [a, a/2]].
// With alpha = 1: A = [[1, 1], [1, 1/2]], radius (3 + sqrt(17)) / 4; the sum of paths is solved by hand for 2 x 2.
TEST(InfFs, SumsUpAllPaths) {
  const auto features = torch::tensor({{0.0, 0.0}, {2.0, 1.0}, {4.0, 2.0}}, torch::kFloat64);
  const double radius = (3 + std::sqrt(17.0)) / 4, r = 0.9 / radius;
  // (I - rA)^-1 by its determinant.
  const double p = 1 - r, q = 1 - r / 2, determinant = p * q - r * r;
  const torch::Tensor scores = inf_fs(features, 1);
  EXPECT_NEAR(scores[0].item<double>(), (q + r) / determinant - 1, 1e-9);
  EXPECT_NEAR(scores[1].item<double>(), (p + r) / determinant - 1, 1e-9);
  // The series itself, term by term.
  const torch::Tensor a = torch::tensor({{1.0, 1.0}, {1.0, 0.5}}, torch::kFloat64);
  torch::Tensor power = torch::eye(2, torch::kFloat64), sum = torch::zeros({2, 2}, torch::kFloat64);
  for (int i = 0; i < 400; ++i) {
    power = power.mm(r * a);
    sum = sum + power;
  }
  EXPECT_LT((scores - sum.sum(1)).abs().max().item<double>(), 1e-9);
}

TEST(InfFs, ConstantFeaturesComeLast) {
  torch::manual_seed(1);
  torch::Tensor features = torch::rand({50, 6}, torch::kFloat64);
  features.select(1, 2).fill_(0.7);
  features.select(1, 4).zero_();
  const torch::Tensor scores = inf_fs(features);
  for (const int64_t dead : {2, 4}) {
    for (const int64_t alive : {0, 1, 3, 5}) EXPECT_LT(scores[dead].item<double>(), scores[alive].item<double>());
  }
  EXPECT_EQ(inf_fs(torch::ones({5, 3})).abs().sum().item<double>(), 0);
  expect_error(ErrorKind::kUsage, "features of two or more images", [] { inf_fs(torch::ones({1, 3})); });
  expect_error(ErrorKind::kFailure, "not finite", [] { inf_fs(torch::tensor({{1.0f, NAN}, {2.0f, 1.0f}})); });
}

TEST(ResponseNode, IsWhatTheLastLayerReads) {
  EXPECT_EQ(response_node(testing::small_resnet(Method{})).name, "avgpool");
  EXPECT_EQ(
      response_node(net("x = input 3x8x8\na = conv x out=4\nb = relu a\nflat = flatten b\nfc = linear flat out=2\n"))
          .name,
      "b");
  EXPECT_EQ(response_node(net("x = input 3x8x8\na = conv x out=4\nb = conv a out=2\npool = gap b\n")).name, "a");
  expect_error(ErrorKind::kUsage, "expected one last layer with weights in test, got 'c' (2 inputs)", [] {
    response_node(net("x = input 3x8x8\na = conv x out=4\nb = conv x out=4\nc = add a b\npool = gap c\n"));
  });
}

// By hand: a 1x1 convolution from two channels to two, their mean, scores 3 and 5.
TEST(PropagateScores, ThroughAPointwiseConvolutionAndASkip) {
  const Graph graph =
      net("x = input 3x2x2\na = conv x out=2\nnorm = bn a\nact = relu norm\nb = conv act out=2\n"
          "sum = add act b\npool = gap sum\nfc = linear pool out=2\n");
  nn::GraphModule module(graph);
  {
    const torch::NoGradGuard no_grad;
    module->named_parameters()["b.weight"].copy_(torch::tensor({{1.0, -2.0}, {-4.0, 0.5}}).view({2, 2, 1, 1}));
    module->named_parameters()["norm.weight"].fill_(-3);
    module->named_buffers()["norm.running_mean"].fill_(2);
  }
  const auto scores = propagate_scores(module, torch::tensor({3.0, 5.0}), {"a", "b"});
  // Each pixel of the four has a quarter of a score; a channel has the sum: 3 and 5 for b, and for a what b's weights
  // give, 3 * 1 + 5 * 4 and 3 * 2 + 5 * 0.5, beside the 3 and 5 of the skip.
  EXPECT_NEAR(scores[1].channels[0], 3, 1e-6);
  EXPECT_NEAR(scores[1].channels[1], 5, 1e-6);
  EXPECT_NEAR(scores[0].channels[0], 3 + 3 + 20, 1e-5);
  EXPECT_NEAR(scores[0].channels[1], 5 + 6 + 2.5, 1e-5);
}

// 3x3 on 3x3 with padding: the pixel in a corner is read 4 times, one at an edge 6 times, the centre 9 times.
TEST(PropagateScores, CountsHowOftenAPixelIsRead) {
  const Graph graph =
      net("x = input 1x3x3\na = conv x out=1\nb = conv a out=1 kernel=3 pad=1\npool = gap b\n"
          "fc = linear pool out=2\n");
  nn::GraphModule module(graph);
  {
    const torch::NoGradGuard no_grad;
    module->named_parameters()["b.weight"].fill_(-1);
  }
  const auto scores = propagate_scores(module, torch::ones({1}), {"a"});
  EXPECT_NEAR(scores[0].channels[0], (4 * 4 + 4 * 6 + 9) / 9.0, 1e-6);
}

TEST(Nisp, ChannelsThatNothingReadsComeLast) {
  const DataSource source = open_data("shapes:train=60,test=10");
  torch::manual_seed(0);
  nn::GraphModule module(testing::small_resnet(Method{}));
  {
    const torch::NoGradGuard no_grad;
    torch::Tensor reader = module->named_parameters()["layer2.0.conv2.weight"];  // [8, 8, 3, 3]
    for (const int64_t dead : {1, 6}) reader.select(1, dead).zero_();
  }
  const auto convs = cuttable_convs(module->graph());
  ImageScoreOptions options;
  options.stream.view.normalisation = source.normalisation;
  options.stream.batch_size = 16;
  options.stream.train = true;
  options.images = 40;
  int64_t seen = 0;
  options.progress = [&](const char*, int64_t images) {
    seen = images;
    return true;
  };
  const auto scores = score_nisp(module, *source.train, convs, options).value();
  EXPECT_EQ(seen, 48);  // whole batches
  ASSERT_EQ(scores.size(), 3u);
  for (const LayerScores& layer : scores) {
    for (const double score : layer.channels) EXPECT_TRUE(std::isfinite(score));
  }
  const ChannelPlan plan = keep_best_of_each(scores, {{"layer2.0.conv1", 0.25}});
  EXPECT_EQ(plan.at("layer2.0.conv1"), (std::vector<int64_t>{0, 2, 3, 4, 5, 7}));
  // The same again, bit for bit; nothing of the module changed.
  EXPECT_EQ(score_nisp(module, *source.train, convs, options).value()[1].channels, scores[1].channels);
  options.progress = [](const char*, int64_t) { return false; };
  EXPECT_FALSE(score_nisp(module, *source.train, convs, options).has_value());
}

// Sums of magnitudes grow by a factor in every one of 55 layers: beyond 32 bits, not beyond 64.
TEST(Nisp, DeepNetworksStayFinite) {
  NetSpec spec;
  spec.arch = "resnet56";
  torch::manual_seed(0);
  const nn::GraphModule module(build_network(spec));
  const auto scores = propagate_scores(module, torch::ones({64}), cuttable_convs(module->graph()));
  ASSERT_EQ(scores.size(), 27u);
  for (const LayerScores& layer : scores) {
    for (const double score : layer.channels) EXPECT_TRUE(std::isfinite(score) && score > 0) << layer.name;
  }
}

}  // namespace
}  // namespace onetap
