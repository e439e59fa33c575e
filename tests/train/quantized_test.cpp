// Training for int8: its rounding, where that is, and runs of it.
#include "onetap/graph/text.h"
#include "onetap/tap/weight_scale.h"
#include "onetap/train/init.h"
#include "onetap/train/quantized_training.h"
#include "tests/train/training.h"

#include <cmath>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_same_run;
using testing::expect_states_alike;
using testing::last_module;
using testing::small_recipe;
using testing::states_by_engine;
using testing::TempDir;
using testing::train_in;

TEST(FakeQuantize, RoundsHalvesUpWithinTheRange) {
  const auto scale = torch::tensor(0.5);
  const auto x = torch::tensor({0.2, 0.25, -0.25, -0.26, 0.74, 63.5, 100.0, -64.0, -100.0});
  EXPECT_TRUE(fake_quantize(x, scale, {}).equal(torch::tensor({0.0, 0.5, 0.0, -0.5, 0.5, 63.5, 63.5, -63.5, -63.5})));
  EXPECT_TRUE(fake_quantize(x, scale, {0, 255}).equal(torch::tensor({0.0, 0.5, 0.0, 0.0, 0.5, 63.5, 100.0, 0.0, 0.0})));
}

// Straight through: the slope of the same without rounding, clamp(x, least * scale, most * scale).
TEST(FakeQuantize, GradientsAreThoseOfFiniteDifferencesWithoutRounding) {
  torch::manual_seed(81);
  for (const ByteRange& range : {ByteRange{}, ByteRange{0, 255}}) {
    const double scale = 0.03;
    auto x = (torch::randn({200}, torch::kFloat64) * 5).requires_grad_();
    const auto by = torch::randn({200}, torch::kFloat64);
    (fake_quantize(x, torch::tensor(scale, torch::kFloat64), range) * by).sum().backward();
    const auto surrogate = [&](const torch::Tensor& at) {
      return at.clamp(static_cast<double>(range.least) * scale, static_cast<double>(range.most) * scale) * by;
    };
    const torch::NoGradGuard no_grad;
    const double h = 1e-6;
    const auto expected = (surrogate(x + h) - surrogate(x - h)) / (2 * h);
    EXPECT_TRUE(torch::allclose(x.grad(), expected, 1e-6, 1e-6));
    EXPECT_LT((x.grad() != 0).sum().item<int64_t>(), 200);  // some lie outside
  }
}

TEST(FakeQuantize, ScalesOfWeightsLieOnTheGridOfFiles) {
  torch::manual_seed(82);
  auto weight = torch::randn({40, 3, 3, 3}) * torch::logspace(-4, 1, 40).view({-1, 1, 1, 1});
  weight[7].zero_();
  const auto scales = weight_scales(weight);
  WeightScale grid;
  grid.base = static_cast<float>(weight.abs().max().item<double>() / 127);
  const double least = grid.base * std::exp2(-255.0 / 16);
  for (int64_t d = 0; d < 40; ++d) {
    const double largest = weight[d].abs().max().item<double>();
    // The finest scale that still reaches the largest weight.
    int steps = 0;
    while (steps < 255 && std::exp2(-(steps + 1) / 16.0) * grid.base * 127 >= largest) ++steps;
    grid.steps = {static_cast<uint8_t>(steps)};
    EXPECT_NEAR(scales[d].item<double>() / grid.of(0), 1, 1e-12) << d;
    if (largest / 127 < least) continue;
    EXPECT_LE(largest / scales[d].item<double>(), 127.0001) << d;
    EXPECT_GT(largest / scales[d].item<double>(), 121.5) << d;
  }
  const auto rounded = fake_quantize_weight(weight);
  EXPECT_TRUE(rounded[7].equal(weight[7]));
  EXPECT_TRUE(((rounded - weight).abs() <= scales.view({-1, 1, 1, 1}) * 0.5001).all().item<bool>());
  EXPECT_TRUE(fake_quantize_weight(torch::zeros({2, 3})).equal(torch::zeros({2, 3})));
}

std::vector<std::string> place_names(const Int8Places& places) {
  std::vector<std::string> names;
  for (const Int8Place& place : places.values) {
    names.push_back(place.node + (place.range.least == 0 ? " u8" : " i8") + " " + std::to_string(place.steps));
  }
  return names;
}

TEST(Int8Places, AreTheValuesThatTheFrozenNetworkKeeps) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 3x8x8\nc1 = conv x out=4 kernel=3 pad=1\nb1 = bn c1\nr1 = relu b1\n"
      "c2 = conv r1 out=4 kernel=3 pad=1\nb2 = bn c2\nc3 = conv r1 out=4 kernel=1\nb3 = bn c3\n"
      "s = add b2 b3\nr2 = relu s\nm = maxpool r2 kernel=2 stride=2\np = gap m\nfc = linear p out=2\n");
  const Int8Places places = int8_places(graph);
  // The later convolution joins the sum before it is rounded; the other addend is a value of its own. The maximum has
  // the scale of what it reads, and the last layer gives floats.
  EXPECT_EQ(place_names(places),
            (std::vector<std::string>{"x i8 127", "r1 u8 255", "b2 i8 127", "r2 u8 255", "p u8 255"}));
  EXPECT_EQ(places.values[2].value, "c2");
  EXPECT_EQ(places.layers, (std::map<std::string, std::string>{{"c1", "b1"}, {"c2", "b2"}, {"c3", "b3"}, {"fc", ""}}));
}

TEST(Int8Places, AReLU6IsRoundedAsAReLUIs) {
  const auto names_with = [](const std::string& function) {
    return place_names(int8_places(
        parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=1\nb = bn c\nr = " + function +
                      " b\np = gap r\nfc = linear p out=2\n")));
  };
  EXPECT_EQ(names_with("relu6"), names_with("relu"));
}

TEST(Int8Places, AConcatenationHasOneScale) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 3x8x8\nc1 = conv x out=4 kernel=1\nr1 = relu c1\nc2 = conv x out=4 kernel=1\n"
      "j = concat r1 c2\nb = bn j\np = gap b\nfc = linear p out=2\n");
  const Int8Places places = int8_places(graph);
  EXPECT_EQ(place_names(places),
            (std::vector<std::string>{"x i8 127", "r1 u8 127", "c2 i8 127", "b i8 127", "p i8 127"}));
  EXPECT_EQ(places.values[1].group, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(places.values[2].group, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(places.affine, std::vector<std::string>{"b"});
  expect_error(ErrorKind::kUsage, "expected ops that have an int8 form, got activeshift ('a')", [] {
    int8_places(parse_network("onetap-net 1\nx = input 3x8x8\na = activeshift x\np = gap a\nfc = linear p out=2\n"));
  });
}

// A run with something learned, and the recipe of a run for int8 that starts from it.
Recipe int8_recipe(const TempDir& dir, const std::string& method) {
  Recipe recipe = small_recipe();
  recipe.epochs = 1;
  recipe.method = method;
  train_in(dir / "before", recipe);
  recipe.init = (dir / "before").string();
  recipe.quantize = Quantize::kInt8;
  recipe.lr = 0.01;
  recipe.epochs = 2;
  return recipe;
}

bool on_grid(const torch::Tensor& x, double scale) {
  const auto steps = x / scale;
  return (steps - steps.round()).abs().max().item<double>() < 1e-3;
}

TEST(QuantizedTraining, ComputesOnTheGridOfEveryValue) {
  const TempDir dir;
  const Recipe recipe = int8_recipe(dir, "sal");
  nn::GraphModule module = last_module(dir / "before");
  QuantizedTraining quantized(module);
  const torch::NoGradGuard no_grad;
  module->eval();
  const auto x = torch::randn({8, 3, 32, 32});
  int batches = 0;
  nn::GraphModule floats = last_module(dir / "before");
  floats->eval();
  const nn::ModeGuard hard(floats, nn::AttentionMode::kHard);
  const auto expected = floats->forward(x);
  quantized.calibrate([&] {
    EXPECT_TRUE(torch::allclose(module->forward(x), expected, 1e-5, 1e-5));  // in floats, hard
    return ++batches < 2;
  });
  const Int8Places places = int8_places(module->graph());
  const auto ranges = module->named_buffers()["ranges"];
  ASSERT_EQ(ranges.size(0), static_cast<int64_t>(places.values.size()));
  EXPECT_NEAR(ranges[0].item<double>(), x.abs().max().item<double>(), 1e-6);
  int64_t seen = 0;
  module->set_observer([&](const Node& node, const torch::Tensor& value) {
    for (size_t i = 0; i < places.values.size(); ++i) {
      if (places.values[i].node != node.name) continue;
      const double range = ranges[static_cast<int64_t>(i)].item<double>();
      EXPECT_TRUE(on_grid(value, range / static_cast<double>(places.values[i].steps))) << node.name;
      EXPECT_LE(value.abs().max().item<double>(), range * 1.0001) << node.name;
      ++seen;
    }
  });
  const auto got = module->forward(x);
  EXPECT_EQ(seen, ranges.size(0));
  const double off = (got - expected).abs().max().item<double>() / expected.abs().max().item<double>();
  EXPECT_GT(off, 0);
  EXPECT_LT(off, 0.1);  // 8 bits
  EXPECT_EQ(named_ranges(module->graph(), ranges).size(), places.values.size());
}

TEST(QuantizedTraining, TrainsTheKeptTapsAloneAndKeepsRanges) {
  const TempDir dir;
  Recipe recipe = int8_recipe(dir, "sal");
  train_in(dir / "whole", recipe);
  EXPECT_EQ(train_in(dir / "parts", recipe, 4).result, TrainOutcome::kInterrupted);
  const auto before = nn::state_of(*last_module(dir / "before"));
  fs::remove_all(dir / "before");
  EXPECT_EQ(train_in(dir / "parts", recipe, 3).result, TrainOutcome::kInterrupted);
  EXPECT_EQ(train_in(dir / "parts", recipe).result, TrainOutcome::kFinished);
  expect_same_run(dir / "whole", dir / "parts");
  const auto lines = read_metrics(RunFiles(dir / "whole").metrics());
  EXPECT_EQ(lines.back().acc_hard, lines.back().acc_soft);  // one form alone
  const auto after = nn::state_of(*last_module(dir / "whole"));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& name = before[i].first;
    const bool stays = name.find(".attention") != std::string::npos || name.find("running_") != std::string::npos ||
                       name.find("num_batches") != std::string::npos;
    EXPECT_EQ(before[i].second.equal(after[i].second), stays) << name;
  }
  const RunFiles files(dir / "whole");
  const auto ranges = read_ranges(CheckpointFolder(files.checkpoints()).find("last"), files.read_graph());
  EXPECT_EQ(ranges.count("conv1"), 0u);  // its ReLU has the value
  EXPECT_GT(ranges.at("relu"), 0);
}

TEST(QuantizedTraining, EnginesTrainAlike) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = int8_recipe(dir, "conv");
  recipe.data = "shapes:train=16,test=16";
  recipe.epochs = 1;
  expect_states_alike(states_by_engine(dir.path(), recipe, {EngineChoice::kPlain, EngineChoice::kCaptured}));
  recipe.engine = EngineChoice::kFused;
  expect_error(ErrorKind::kUsage, "fused steps are not available for this run: it is trained for int8 (quantize)",
               [&] { train_in(dir / "fused", recipe); });
}

TEST(QuantizedTraining, IsRefusedWhereItCannotBe) {
  const TempDir dir;
  Recipe recipe = int8_recipe(dir, "conv");
  const auto refused = [](const Recipe& bad, const std::string& why) {
    expect_error(ErrorKind::kUsage, why, [&] {
      check_recipe(bad);
      check_init(bad, recipe_network(bad, 10, 32));
    });
  };
  Recipe bad = recipe;
  bad.init = "";
  refused(bad, "--quantize starts from a trained network: expected --init");
  bad = recipe;
  bad.recalibrate = 100;
  refused(bad, "--quantize keeps batch norm's statistics");
  bad = recipe;
  bad.precision = Precision::kBf16;
  refused(bad, "expected precision auto, fp32 or tf32 with --quantize, got bf16");
  bad = recipe;
  bad.method = "sal";
  refused(bad, "--quantize expected 'layer1.0.conv1' trained as sal taps=1 share=1, got dense");
  bad.init = (dir / "before" / "checkpoints" / "last" / "model.safetensors").string();
  refused(bad, "--quantize trains kept taps: expected weights with their attention");
  bad.method = "magnitude";
  refused(bad, "--quantize trains kept taps: the method would drop weights of 'layer1.0.conv1'");
}

}  // namespace
}  // namespace onetap
