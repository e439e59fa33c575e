// Trainings by every method, short ones.
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/journal/attention_log.h"
#include "onetap/train/init.h"
#include "onetap/train/parameter_rules.h"
#include "onetap/train/sgd.h"
#include "tests/train/training.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_resumes_bit_for_bit;
using testing::expect_same_run;
using testing::expect_states_alike;
using testing::last_module;
using testing::small_recipe;
using testing::states_by_engine;
using testing::TempDir;
using testing::train_in;

const std::vector<EngineChoice> kEngines = {EngineChoice::kPlain, EngineChoice::kFused, EngineChoice::kCaptured};

struct Case {
  const char* name;
  const char* settings;  // lines of a recipe
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

const Case kCases[] = {{"RandomTaps", "method = \"random-taps\"\ntaps = 2\nshare = 2\n"},
                       {"Magnitude", "method = \"magnitude\"\n"},
                       {"Shift", "method = \"shift\"\n"},
                       {"ActiveShift", "method = \"active-shift\"\nshift_lr = 0.1\ndecay_norms = false\n"},
                       {"BinaryConnect", "method = \"bc\"\n"},
                       {"Bwn", "method = \"bwn\"\nbwn_scale = \"filter\"\n"}};

// A run of Shift Attention Layers that keep half of their slices.
Recipe half_empty() {
  Recipe recipe = small_recipe();
  recipe.epochs = 2;
  apply_recipe_text(recipe, "method = \"sal\"\ndensity = 0.5\n", "test");
  return recipe;
}

class Methods : public ::testing::TestWithParam<Case> {
 protected:
  // With weights to start from, where the method needs them.
  Recipe recipe(const TempDir& dir, int64_t width) const {
    Recipe recipe = small_recipe();
    recipe.width = width;
    if (GetParam().name != std::string("Magnitude")) {
      apply_recipe_text(recipe, GetParam().settings, "test");
      return recipe;
    }
    Recipe dense = recipe;
    dense.method = "conv";
    dense.epochs = 1;
    train_in(dir / "dense", dense);
    apply_recipe_text(recipe, GetParam().settings, "test");
    recipe.init = (dir / "dense").string();
    return recipe;
  }
};

TEST_P(Methods, LearnMoreThanChance) {
  if (testing::kThreadSanitizer || testing::kAddressSanitizer) GTEST_SKIP() << "skipped: the code of ResumeBitForBit";
  const TempDir dir;
  Recipe recipe = this->recipe(dir, 10);  // fixed shifts need nine channels to move any
  recipe.data = "shapes:train=512,test=16";
  recipe.epochs = 5;
  recipe.schedule = LrSchedule::kCosine;
  recipe.augment = AugmentChoice::kNone;
  recipe.eval_every = 5;
  train_in(dir / "run", recipe);
  const auto lines = read_metrics(RunFiles(dir / "run").metrics());
  const MetricLine& train = lines[lines.size() - 2];
  ASSERT_EQ(train.split, "train");
  // 512 images at a chance of 0.1, a standard deviation of 0.013; networks of this size get 0.24 or more.
  EXPECT_GT(train.acc_soft, 0.18);
  EXPECT_EQ(lines.back().acc_hard, lines.back().acc_soft);  // one form alone
}

TEST_P(Methods, ResumeBitForBit) {
  const TempDir dir;
  Recipe recipe = this->recipe(dir, 4);
  recipe.epochs = 2;
  recipe.ema = 0.9;
  train_in(dir / "whole", recipe);
  EXPECT_EQ(train_in(dir / "parts", recipe, 4).result, TrainOutcome::kInterrupted);
  fs::remove_all(dir / "dense");  // what a run started from may be gone
  EXPECT_EQ(train_in(dir / "parts", recipe, 3).result, TrainOutcome::kInterrupted);
  EXPECT_EQ(train_in(dir / "parts", recipe).result, TrainOutcome::kFinished);
  expect_same_run(dir / "whole", dir / "parts");
}

INSTANTIATE_TEST_SUITE_P(All, Methods, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& at) { return at.param.name; });

TEST(MethodRuns, FixedTapsStayAndAreRecorded) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.method = "random-taps";
  recipe.epochs = 2;
  train_in(dir / "run", recipe);
  const auto lines = read_attention(RunFiles(dir / "run").attention());
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < lines[0].layers.size(); ++i) {
    EXPECT_EQ(lines[0].layers[i].kept, lines[1].layers[i].kept);
    EXPECT_EQ(lines[1].layers[i].agreement, 1.0);
  }
}

TEST(MethodRuns, LearnedEmptySlicesResumeBitForBitAndEndAtTheirDensity) {
  const TempDir dir;
  const Recipe recipe = half_empty();
  expect_resumes_bit_for_bit(dir / "whole", dir / "parts", recipe, {4});
  for (const AttentionLine& line : read_attention(RunFiles(dir / "whole").attention())) {
    for (const LayerAttention& layer : line.layers) EXPECT_NEAR(layer.none, 0.5, 1e-5) << layer.name;
  }
}

// Those that the trained weights call for, and not those of the weights after fine-tuning.
TEST(MethodRuns, MagnitudeTapsAreThoseOfTheWeightsItStartsFrom) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.epochs = 1;
  recipe.method = "conv";
  train_in(dir / "dense", recipe);
  recipe.method = "magnitude";
  recipe.init = (dir / "dense").string();
  train_in(dir / "run", recipe);
  const auto dense = last_module(dir / "dense"), pruned = last_module(dir / "run");
  const auto weight = dense->named_parameters()["layer2.0.conv1.weight"].flatten(2);
  EXPECT_TRUE(pruned->named_buffers()["layer2.0.conv1.positions"].squeeze(-1).equal(weight.abs().argmax(-1)));
}

TEST(MethodRuns, BinaryConnectKeepsItsWeightsWithinOne) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.epochs = 1;
  recipe.method = "bc";
  recipe.lr = 20;  // far enough to leave [-1, 1] in six steps
  for (const char* engine : {"plain", "fused"}) {
    if (engine == std::string("fused")) recipe.layers = "conv1,layer*";  // a linear layer has no fused form
    set_recipe_field(recipe, known_recipe_field("engine", "test"), engine, "engine");
    train_in(dir / engine, recipe);
    const auto weight = last_module(dir / engine)->named_parameters()["layer3.0.conv2.weight"];
    EXPECT_EQ(weight.abs().max().item<double>(), 1.0) << engine;
  }
}

// Autograd over a layer's weights within a fused step is the plain step, to rounding. One step: a binary weight near 0
// may have another sign in the next.
TEST(MethodRuns, FusedStepsTrainAsPlainOnesDo) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  for (const std::string method : {"random-taps", "bc", "bwn"}) {
    Recipe recipe = small_recipe();
    recipe.method = method;
    recipe.layers = "layer*";
    recipe.data = "shapes:train=16,test=16";
    recipe.epochs = 1;
    expect_states_alike(states_by_engine(dir.path(), recipe, kEngines), method);
  }
}

TEST(MethodRuns, LearnedEmptySlicesTrainAlikeInEveryEngine) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = half_empty();
  recipe.data = "shapes:train=16,test=16";
  recipe.epochs = 1;
  const auto states = states_by_engine(dir.path(), recipe, kEngines);
  expect_states_alike(states);
  EXPECT_TRUE(std::any_of(states[0].begin(), states[0].end(),
                          [](const auto& tensor) { return tensor.first == "layer1.0.conv1.keep"; }));
}

// Unit gradients, no decay of norms, a decay of logits; methods on linear layers, which only autograd has.
TEST(MethodRuns, EnginesTrainAlike) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  for (const char* settings :
       {"method = \"active-shift\"\nshift_lr = 0.5\ndecay_norms = false\n", "method = \"shift\"\n",
        "method = \"sal\"\nlogit_decay = 0\n", "method = \"sal\"\ntaps = 2\nlogit_decay = 0\n",
        "method = \"sal\"\ndensity = 0.5\nlogit_decay = 0\n", "method = \"bc\"\nlr = 5.0\n"}) {
    Recipe recipe = small_recipe();
    apply_recipe_text(recipe, settings, "test");
    recipe.data = "shapes:train=16,test=16";
    recipe.epochs = 1;
    recipe.weight_decay = 0.1;
    std::vector<EngineChoice> engines = kEngines;
    if (recipe.method == "bc") engines.erase(engines.begin() + 1);  // fused
    expect_states_alike(states_by_engine(dir.path(), recipe, engines), settings);
  }
}

TEST(MethodRuns, FusedStepsRefuseWhatTheyHaveNot) {
  const TempDir dir;
  const auto refused = [&](const std::string& settings, const std::string& why) {
    Recipe recipe = small_recipe();
    apply_recipe_text(recipe, settings + "engine = \"fused\"\n", "test");
    expect_error(ErrorKind::kUsage, why, [&] { train_in(dir / "run", recipe); });
    fs::remove_all(dir / "run");
  };
  refused("arch = \"squeezenet\"\nmethod = \"conv\"\n", "(conv): has a bias");
}

TEST(Init, TakesARunOrAFile) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.method = "conv";
  recipe.epochs = 1;
  recipe.ema = 0.5;
  train_in(dir / "dense", recipe);
  const auto dense = last_module(dir / "dense");  // averaged
  nn::write_tensors(dir / "w.safetensors", nn::state_of(*dense));
  for (const char* method : {"random-taps", "bc", "sal"}) {
    for (const char* source : {"dense", "w.safetensors"}) {
      Recipe next = small_recipe();
      next.method = method;
      next.init = (dir / source).string();
      const nn::GraphModule module(recipe_network(next, 10, 32));
      import_init(next, module, {});
      const auto mine = module->named_parameters(), theirs = dense->named_parameters();
      for (const char* name : {"conv1.weight", "layer2.0.conv2.weight", "layer2.0.bn2.bias", "fc.weight"}) {
        if (method == std::string("sal") && name == std::string("layer2.0.conv2.weight")) continue;  // start_test.cpp
        EXPECT_TRUE(mine[name].equal(theirs[name])) << method << " " << source << " " << name;
      }
    }
  }
}

TEST(Init, LeavesOutWhatIsSkippedAndSaysSo) {
  const TempDir dir;
  const Recipe plain = small_recipe();
  torch::manual_seed(51);
  const nn::GraphModule source(recipe_network(plain, 10, 32));
  nn::write_tensors(dir / "w.safetensors", nn::state_of(*source));
  Recipe recipe = plain;
  recipe.init = (dir / "w.safetensors").string();
  recipe.init_skip = "fc.*, *.attention";
  const nn::GraphModule module(recipe_network(plain, 7, 32));  // other classes: the last layer would not fit
  std::vector<std::string> notices;
  import_init(recipe, module, [&](const std::string& text) { notices.push_back(text); });
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("8 tensors of this network were not taken (init_skip)"), std::string::npos) << notices[0];
  const auto mine = module->named_parameters(), theirs = source->named_parameters();
  EXPECT_TRUE(mine["layer1.0.conv1.weight"].equal(theirs["layer1.0.conv1.weight"]));
  EXPECT_FALSE(mine["layer1.0.conv1.attention"].equal(theirs["layer1.0.conv1.attention"]));
}

TEST(Init, SaysWhatDoesNotFit) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.method = "conv";
  recipe.epochs = 1;
  train_in(dir / "dense", recipe);
  const auto refused = [&](ErrorKind kind, const std::string& why) {
    expect_error(kind, why, [&] { check_init(recipe, recipe_network(recipe, 10, 32)); });
  };
  recipe.method = "magnitude";
  refused(ErrorKind::kUsage, "[train] method magnitude starts from a trained network: expected --init RUN|FILE");
  recipe.init = (dir / "dense").string();
  check_init(recipe, recipe_network(recipe, 10, 32));
  recipe.init_skip = "head.*";
  refused(ErrorKind::kUsage, "[init] no tensor matches 'head.*' of --init-skip");
  recipe.init_skip = "";
  recipe.method = "shift";
  refused(ErrorKind::kData, "expected shape [4, 4, 1, 1] for 'layer1.0.conv1.weight', got [4, 4, 3, 3]; --init-skip");
  recipe.init = dir.path().string();
  refused(ErrorKind::kData, "[run] expected a run directory with config.toml");
}

TEST(ParameterRules, FollowTheRecipe) {
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=3 pad=1 bias=1\nb = bn c\na = activeshift b\n"
      "p = gap a\nfc = linear p out=2\n");
  Recipe recipe;
  recipe.shift_lr = 0.25;
  auto rules = parameter_rules(graph, recipe);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules["a.weight"].rate, 0.25);
  EXPECT_EQ(rules["a.weight"].decay, 0);
  EXPECT_TRUE(rules["a.weight"].unit_rows);
  recipe.decay_norms = false;
  rules = parameter_rules(graph, recipe);
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules) {
    names.push_back(name);
    EXPECT_EQ(rule.decay, 0) << name;
    EXPECT_EQ(rule.rate, name == "a.weight" ? 0.25 : 1) << name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a.weight", "b.bias", "b.weight", "c.bias", "fc.bias"}));
  // Every rule is for a parameter.
  EXPECT_EQ(Sgd(*nn::GraphModule(graph), {}, rules).rules().size(), 7u);
}

}  // namespace
}  // namespace onetap
