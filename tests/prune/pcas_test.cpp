#include "onetap/prune/pcas.h"

#include "onetap/base/random.h"
#include "onetap/nn/tensor_file.h"
#include "tests/graph/small_nets.h"
#include "tests/prune/net.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onetap {
namespace {

using testing::net;

// Grey images, light ones (class 0) and dark ones (class 1), with noise.
MemoryDataset light_and_dark(int images) {
  MemoryDataset data(3, 8, 8);
  for (int i = 0; i < images; ++i) {
    Random random(7, Purpose::kTest, static_cast<uint32_t>(i));
    std::vector<uint8_t> pixels(3 * 8 * 8);
    const float mean = i % 2 == 0 ? 150.0f : 100.0f;
    for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(mean + random.uniform(-60, 60));
    data.add(pixels.data(), i % 2);
  }
  return data;
}

// Channels 0 and 1 are lightness, 2 and 3 darkness, which the classifier reads; nothing reads 4 and 5; 6 and 7 are
// lightness, which it reads the wrong way round.
nn::GraphModule lightness_network() {
  nn::GraphModule module(
      net("x = input 3x8x8\na = conv x out=8\nact = relu a\nb = conv act out=2\npool = gap b\n"
          "fc = linear pool out=2 bias=0\n"));
  const torch::NoGradGuard no_grad;
  auto parameters = module->named_parameters();
  for (int64_t c = 0; c < 8; ++c) parameters["a.weight"][c].fill_(c == 2 || c == 3 ? -0.5 : 0.5);
  torch::Tensor reader = parameters["b.weight"];
  reader.zero_();
  for (const int64_t c : {0, 1}) reader[0][c] = 1.0;
  for (const int64_t c : {2, 3}) reader[1][c] = 1.0;
  for (const int64_t c : {6, 7}) reader[1][c] = 0.5;
  parameters["fc.weight"].copy_(torch::eye(2));
  return module;
}

PcasOptions options_for_light() {
  PcasOptions options;
  options.score.stream.view.size = 8;
  options.score.stream.view.normalisation = {{0.5f, 0.5f, 0.5f}, {0.2f, 0.2f, 0.2f}};
  options.score.stream.batch_size = 20;
  options.score.stream.train = true;
  options.score.stream.augment.kind = Augment::kNone;
  options.epochs = 10;
  return options;
}

TEST(Pcas, FindsChannelsThatAreDeadOrInTheWay) {
  const MemoryDataset data = light_and_dark(200);
  nn::GraphModule module = lightness_network();
  const auto before = nn::tensor_bytes(nn::state_of(*module));
  const auto scores = score_pcas(module, data, {"a"}, options_for_light()).value();
  ASSERT_EQ(scores.size(), 1u);
  ASSERT_EQ(scores[0].channels.size(), 8u);
  for (const double score : scores[0].channels) EXPECT_TRUE(score > 0 && score < 1) << score;
  const ChannelPlan plan = keep_best_of_all(scores, 0.5);
  EXPECT_EQ(plan.at("a"), (std::vector<int64_t>{0, 1, 2, 3}));
  // The network under the branches is as it was, and can be trained again.
  EXPECT_EQ(nn::tensor_bytes(nn::state_of(*module)), before);
  for (const auto& parameter : module->parameters()) EXPECT_TRUE(parameter.requires_grad());
  EXPECT_TRUE(module->is_training());
}

TEST(Pcas, DependsOnTheSeedAlone) {
  const MemoryDataset data = light_and_dark(60);
  nn::GraphModule module = lightness_network();
  PcasOptions options = options_for_light();
  options.epochs = 1;
  const auto first = score_pcas(module, data, {"a"}, options).value();
  torch::rand({5});
  EXPECT_EQ(score_pcas(module, data, {"a"}, options).value()[0].channels, first[0].channels);
  options.seed = 1;
  EXPECT_NE(score_pcas(module, data, {"a"}, options).value()[0].channels, first[0].channels);
}

TEST(Pcas, StopsWhenItIsAskedTo) {
  const MemoryDataset data = light_and_dark(60);
  nn::GraphModule module = lightness_network();
  for (const char* wanted : {"attention", "statistics"}) {
    PcasOptions options = options_for_light();
    options.epochs = 1;
    options.score.progress = [&](const std::string& stage, int64_t) { return stage != wanted; };
    EXPECT_FALSE(score_pcas(module, data, {"a"}, options).has_value()) << wanted;
  }
  // Without its branches the network gives what it gave.
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::rand({1, 3, 8, 8});
  EXPECT_TRUE(torch::equal(module->forward(x), lightness_network()->forward(x)));
}

TEST(Pcas, AveragesOverAsManyImagesAsWanted) {
  const MemoryDataset data = light_and_dark(100);
  nn::GraphModule module = lightness_network();
  PcasOptions options = options_for_light();
  options.epochs = 1;
  options.score.images = 30;
  int64_t seen = 0;
  options.score.progress = [&](const std::string& stage, int64_t images) {
    if (stage == "statistics") seen = images;
    return true;
  };
  score_pcas(module, data, {"a"}, options);
  EXPECT_EQ(seen, 40);  // whole batches of 20
}

TEST(GatedNode, IsTheLastOfItsOwnNormAndRelu) {
  const Graph resnet = testing::small_resnet(Method{});
  EXPECT_EQ(gated_node(resnet, "layer1.0.conv1").name, "layer1.0.relu1");
  EXPECT_EQ(gated_node(resnet, "layer1.0.conv2").name, "layer1.0.bn2");
  const Graph fire =
      net("x = input 3x8x8\nsqueeze = conv x out=4\nact = relu squeeze\none = conv act out=4\n"
          "three = conv act out=4\nboth = concat one three\nlast = relu both\n");
  EXPECT_EQ(gated_node(fire, "squeeze").name, "act");
  EXPECT_EQ(gated_node(fire, "one").name, "one");
}

}  // namespace
}  // namespace onetap
