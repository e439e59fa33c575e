// What a run starts from, and which of its parameters stay as they are.
#include "onetap/base/text.h"
#include "onetap/train/frozen_layers.h"
#include "onetap/train/init.h"
#include "tests/train/training.h"

#include <cstdio>

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_resumes_bit_for_bit;
using testing::last_module;
using testing::small_recipe;
using testing::states_by_engine;
using testing::TempDir;
using testing::train_in;

// A dense run that has learned something: 3 epochs of 48 steps.
Recipe dense_recipe() {
  Recipe recipe = small_recipe();
  recipe.method = "conv";
  recipe.data = "shapes:train=384,test=200";
  recipe.width = 6;
  recipe.batch_size = 8;
  recipe.lr = 0.03;
  recipe.schedule = LrSchedule::kCosine;
  recipe.augment = AugmentChoice::kNone;
  return recipe;
}

// Percent, from the line that a run with --init says before its first step.
double accuracy_at_start(const testing::Outcome& outcome) {
  for (const std::string& line : outcome.notices) {
    double soft = 0;
    if (std::sscanf(line.c_str(), "before the first step: test soft %lf %%", &soft) == 1) return soft;
  }
  ADD_FAILURE() << "no line about the start";
  return 0;
}

TEST(Start, AttentionBeginsWithTheAccuracyOfTheDenseNetwork) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = dense_recipe();
  train_in(dir / "dense", recipe);
  const double dense = 100 * read_metrics(RunFiles(dir / "dense").metrics()).back().acc_soft;
  ASSERT_GT(dense, 15) << "nothing learned that could be lost";
  recipe.method = "sal";
  recipe.init = (dir / "dense").string();
  recipe.data = "shapes:train=32,test=200";
  recipe.epochs = 1;
  for (const EngineChoice engine : {EngineChoice::kPlain, EngineChoice::kFused}) {
    recipe.engine = engine;
    const std::string name(choice_word(engine));
    EXPECT_NEAR(accuracy_at_start(train_in(dir / name, recipe)), dense, 0.1) << name;
  }
}

// A start from another run of Shift Attention Layers takes its weights for what they are.
TEST(Start, WeightsThatComeWithTheirAttentionAreNotScaled) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.epochs = 1;
  train_in(dir / "sal", recipe);
  const auto before = last_module(dir / "sal");
  recipe.init = (dir / "sal").string();
  const auto unchanged = [&](const char* init_skip) {
    recipe.init_skip = init_skip;
    const nn::GraphModule module(recipe_network(recipe, 10, 32));
    import_init(recipe, module, {});
    const char* name = "layer2.0.conv2.weight";
    return module->named_parameters()[name].equal(before->named_parameters()[name]);
  };
  EXPECT_TRUE(unchanged(""));
  EXPECT_TRUE(unchanged("*.attention"));
}

Recipe frozen_recipe() {
  Recipe recipe = small_recipe();
  recipe.epochs = 2;
  recipe.freeze_layers = "conv1.*, layer1.*, *.attention, !layer1.0.bn2.bias";
  return recipe;
}

TEST(FreezeLayers, LeavesThemAsTheyAreInEveryKindOfStep) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = frozen_recipe();
  recipe.data = "shapes:train=16,test=16";
  recipe.epochs = 1;
  torch::manual_seed(recipe.seed);
  const nn::GraphModule start(recipe_network(recipe, 10, 32));
  const auto states = states_by_engine(dir.path(), recipe, {EngineChoice::kPlain, EngineChoice::kCaptured});
  const auto before = nn::state_of(*start);
  ASSERT_EQ(states[0].size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& name = before[i].first;
    const bool counts = name.find("num_batches") != std::string::npos;
    // bn2 has a bias that is trained: it goes by its batches.
    const bool frozen = name.rfind("conv1.", 0) == 0 || glob_match("*.attention", name) ||
                        (glob_match("layer1.0.*", name) && !glob_match("layer1.0.bn2.running*", name) &&
                         name != "layer1.0.bn2.bias" && name != "layer1.0.bn2.num_batches_tracked");
    EXPECT_EQ(states[0][i].second.equal(before[i].second), frozen) << name;
    if (counts) continue;
    EXPECT_TRUE(torch::allclose(states[0][i].second, states[1][i].second, 1e-3, 1e-5)) << name;
  }
}

TEST(FreezeLayers, ResumesBitForBit) {
  const TempDir dir;
  const Recipe recipe = frozen_recipe();
  expect_resumes_bit_for_bit(dir / "whole", dir / "parts", recipe, {4});
}

TEST(FreezeLayers, IsRefusedWhereItCannotBe) {
  const TempDir dir;
  Recipe recipe = frozen_recipe();
  const auto refused = [&](const std::string& why, const std::string& layers) {
    recipe.freeze_layers = layers;
    expect_error(ErrorKind::kUsage, why, [&] { check_frozen_layers(recipe, recipe_network(recipe, 10, 32)); });
  };
  refused("no parameter of resnet8 matches 'head.*'", "head.*");
  refused("expected a parameter that is left to train, got --freeze-layers '*'", "*");
  recipe.freeze_layers = "!fc.*";
  check_frozen_layers(recipe, recipe_network(recipe, 10, 32));
  recipe.engine = EngineChoice::kFused;
  expect_error(ErrorKind::kUsage, "fused steps are not available for this run: some of its parameters are not trained",
               [&] { train_in(dir / "run", recipe); });
}

}  // namespace
}  // namespace onetap
