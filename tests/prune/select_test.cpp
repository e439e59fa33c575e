#include "onetap/prune/select.h"

#include "onetap/count/count.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/prune/l1.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

#include <limits>

namespace onetap {
namespace {

using testing::expect_error;
using Channels = std::vector<int64_t>;

Graph resnet56(char shortcut) {
  NetSpec spec;
  spec.arch = "resnet56";
  spec.shortcut = shortcut;
  return build_network(spec);
}

// The first channels of every layer, as many as the preset leaves.
NetworkCount count_preset(const char* preset) {
  const Graph graph = resnet56('A');
  ChannelPlan plan;
  for (const auto& [name, ratio] : preset_ratios(graph, preset)) {
    for (int64_t i = 0; i < kept_count(graph.node(name).out, ratio); ++i) plan[name].push_back(i);
  }
  return count_network(cut_channels(graph, plan).graph, CountRules::kPaper);
}

// Li et al., Table 1: 0.77 M and 112 M, 0.73 M and 90.9 M.
TEST(Presets, CostWhatLiEtAlPublished) {
  const NetworkCount a = count_preset("pruned-a"), b = count_preset("pruned-b");
  EXPECT_EQ(a.params, 773336);
  EXPECT_NEAR(a.macs, 112.4e6, 0.05e6);
  EXPECT_EQ(b.params, 735712);
  EXPECT_NEAR(b.macs, 90.91e6, 0.005e6);
}

TEST(Presets, LeaveLayersWhole) {
  const LayerRatios b = preset_ratios(resnet56('B'), "pruned-b");
  EXPECT_EQ(b.size(), 27u - 6);
  EXPECT_EQ(b.at("layer1.0.conv1"), 0.6);    // the second convolution of all
  EXPECT_EQ(b.count("layer1.7.conv1"), 0u);  // 16
  EXPECT_EQ(b.count("layer2.0.conv1"), 0u);  // 20
  EXPECT_EQ(b.at("layer2.1.conv1"), 0.3);    // 22
  EXPECT_EQ(b.count("layer3.8.conv1"), 0u);  // 54
  EXPECT_EQ(preset_ratios(resnet56('A'), "pruned-a").size(), 27u - 4);
}

TEST(Presets, AreForResNet56) {
  expect_error(ErrorKind::kUsage, "preset pruned-a is for resnet56, got resnet8",
               [] { preset_ratios(testing::small_resnet(Method{}), "pruned-a"); });
  expect_error(ErrorKind::kUsage, "expected preset pruned-a or pruned-b, got 'pruned-c'",
               [] { preset_ratios(resnet56('A'), "pruned-c"); });
}

TEST(KeptCount, RoundsDownAndLeavesOne) {
  EXPECT_EQ(kept_count(16, 0.6), 6);  // 6.4
  EXPECT_EQ(kept_count(32, 0.3), 22);
  EXPECT_EQ(kept_count(64, 0.1), 57);
  EXPECT_EQ(kept_count(10, 0.9), 1);  // 10 * (1 - 0.9) is 0.99999... in floating point
  EXPECT_EQ(kept_count(10, 0.4), 6);
  EXPECT_EQ(kept_count(4, 0.99), 1);
  EXPECT_EQ(kept_count(4, 0), 4);
}

TEST(KeepBest, OfEachLayerByItself) {
  const std::vector<LayerScores> scores = {{"a", {3, 1, 2, 1}}, {"b", {0.1, 0.3, 0.2, 0.4}}, {"c", {1, 1}}};
  const ChannelPlan plan = keep_best_of_each(scores, {{"a", 0.25}, {"b", 0.5}});
  EXPECT_EQ(plan, (ChannelPlan{{"a", {0, 1, 2}}, {"b", {1, 3}}}));  // of equal ones the later goes
  expect_error(ErrorKind::kUsage, "expected scores of 'd'", [&] { keep_best_of_each(scores, {{"d", 0.5}}); });
}

TEST(KeepBest, OfAllTogetherAndOneOfEach) {
  const std::vector<LayerScores> scores = {{"a", {3, 1, 2, 4}}, {"b", {0.1, 0.3}}, {"c", {5, 0.2}}};
  // Of eight, four go: 0.1, 0.2 and 1, and 2 in place of b's last one.
  EXPECT_EQ(keep_best_of_all(scores, 0.5), (ChannelPlan{{"a", {0, 3}}, {"b", {1}}, {"c", {0}}}));
  // One of each layer is left where all should go.
  EXPECT_EQ(keep_best_of_all(scores, 0.99), (ChannelPlan{{"a", {3}}, {"b", {1}}, {"c", {0}}}));
}

TEST(KeepBest, RefusesScoresThatAreNotFinite) {
  const std::vector<LayerScores> scores = {{"a", {1, std::numeric_limits<double>::quiet_NaN()}}};
  for (const auto& keep : {std::function<void()>([&] {
                             keep_best_of_each(scores, {{"a", 0.5}});
                           }),
                           std::function<void()>([&] { keep_best_of_all(scores, 0.5); })}) {
    expect_error(ErrorKind::kFailure, "expected finite scores, got nan for channel 1 of a", keep);
  }
}

TEST(L1, SumsTheMagnitudesOfEveryFilter) {
  nn::GraphModule module(testing::small_resnet(Method{}));
  const torch::NoGradGuard no_grad;
  torch::Tensor weight = module->named_parameters()["layer1.0.conv1.weight"];  // [4, 4, 3, 3]
  weight.fill_(0.5);
  weight[2].fill_(-1);
  weight[3].zero_();
  weight[3][0][0][0] = -7;
  const auto scores = score_l1(module, {"layer1.0.conv1"});
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].name, "layer1.0.conv1");
  EXPECT_EQ(scores[0].channels, (std::vector<double>{18, 18, 36, 7}));
}

}  // namespace
}  // namespace onetap
