// What a run starts from, and which of its parameters stay as they are.
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/graph/text.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/train/frozen_layers.h"
#include "onetap/train/init.h"
#include "onetap/train/plain_norms.h"
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

// A file without attention has weights of dense layers, also where --init-skip names attention.
TEST(Start, SkippedAttentionThatTheFileDoesNotHaveIsThatOfADenseNetwork) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.method = "conv";
  torch::manual_seed(1);
  nn::GraphModule dense(recipe_network(recipe, 10, 32));
  recipe.init = (dir / "dense.safetensors").string();
  write_file_atomic(recipe.init, nn::tensor_bytes(nn::state_of(*dense)));
  recipe.method = "sal";
  nn::GraphModule module(recipe_network(recipe, 10, 32));
  recipe.init_skip = "*.attention";
  import_init(recipe, module, {});
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({4, 3, 32, 32});
  dense->eval();
  module->eval();
  EXPECT_TRUE(torch::allclose(module->forward(x), dense->forward(x), 1e-3, 1e-4));
}

// Batch norms as `import` makes them of biases and folded batch norms: far from the statistics of the values.
nn::GraphModule with_plain_norms() {
  torch::manual_seed(2);
  nn::GraphModule module(
      parse_network("onetap-net 1\nx = input 3x32x32\na = conv x out=6 kernel=3 stride=2\n"
                    "a_bn = bn a\nb = relu a_bn\nc = conv b out=8 kernel=3 stride=2\nc_bn = bn c\n"
                    "d = relu c_bn\ne = conv d out=8 kernel=3\ne_bn = bn e\np = gap e_bn\n"
                    "fc = linear p out=10\n"));
  const torch::NoGradGuard no_grad;
  for (auto& item : module->named_parameters()) {
    if (glob_match("*_bn.weight", item.key())) item.value().uniform_(0.5, 2);
    if (glob_match("*_bn.bias", item.key())) item.value().uniform_(-1, 2);
  }
  for (auto& item : module->named_buffers()) {
    if (glob_match("*_bn.running_var", item.key())) item.value().fill_(kPlainNormVariance);
    if (glob_match("c_bn.running_mean", item.key())) item.value().fill_(0.25);
  }
  return module;
}

TEST(PlainNorms, GetStatisticsAndComputeWhatTheyDid) {
  const torch::NoGradGuard no_grad;
  nn::GraphModule module = with_plain_norms();
  module->fix_norms({"e_bn"});
  EXPECT_EQ(plain_norms(module), (std::vector<std::string>{"a_bn", "c_bn"}));
  const auto x = torch::rand({48, 3, 32, 32});
  const auto difference = [](const torch::Tensor& a, const torch::Tensor& b) {
    return ((a - b).abs().max() / b.std()).item<double>();
  };
  module->eval();
  const auto expected = module->forward(x);
  int64_t first = 0;
  give_statistics(module, plain_norms(module), [&] {
    if (first == 48) return false;
    module->forward(x.narrow(0, first, 16));
    first += 16;
    return true;
  });
  EXPECT_TRUE(plain_norms(module).empty());
  EXPECT_LT(difference(module->forward(x), expected), 1e-3);
  module->train();
  EXPECT_LT(difference(module->forward(x), expected), 1e-3);  // the same images: the same statistics
  nn::GraphModule as_imported = with_plain_norms();
  as_imported->train();
  EXPECT_GT(difference(as_imported->forward(x), expected), 1) << "nothing to keep";
}

// A method that drops most weights has far smaller values; the batch norms must not learn those.
TEST(PlainNorms, HaveTheStatisticsOfTheDenseNetworkWhateverTheMethod) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::rand({48, 3, 32, 32});
  const auto measured = [&](const char* method) {
    nn::GraphModule dense = with_plain_norms();
    std::string text = network_text(dense->graph());
    const std::string conv = "c = conv b out=8 kernel=3 stride=2";
    if (*method != 0) text.replace(text.find(conv), conv.size(), conv + " method=" + method);
    nn::GraphModule module(parse_network(text));
    for (const auto& [name, tensor] : nn::state_of(*module)) {
      for (const auto& [other, value] : nn::state_of(*dense)) {
        if (name == other) torch::Tensor(tensor).copy_(value);
      }
    }
    module->set_temperature(1);
    module->weights_imported({"c"});
    module->eval();
    bool first = true;
    give_statistics(module, plain_norms(module), [&] {
      if (!first) return false;
      module->forward(x);
      first = false;
      return true;
    });
    const auto buffers = module->named_buffers();
    return std::pair(buffers["c_bn.running_mean"].clone(), buffers["c_bn.running_var"].clone());
  };
  const auto [mean, variance] = measured("");
  for (const char* method : {"magnitude taps=1", "random-taps taps=1", "bwn", "bc"}) {
    const auto [other_mean, other_variance] = measured(method);
    EXPECT_TRUE(torch::allclose(other_mean, mean, 1e-4, 1e-6)) << method;
    EXPECT_TRUE(torch::allclose(other_variance, variance, 1e-4, 1e-6)) << method;
  }
}

// At a learning rate near 0 a run ends with the function that it began with.
TEST(PlainNorms, KeepTheFunctionOfAnImportedNetworkInTraining) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  nn::GraphModule module = with_plain_norms();
  recipe.arch = (dir / "mine.net").string();
  write_file_atomic(recipe.arch, network_text(module->graph()));
  recipe.init = (dir / "mine.safetensors").string();
  write_file_atomic(recipe.init, nn::tensor_bytes(nn::state_of(*module)));
  recipe.method = "conv";
  recipe.width.reset();
  recipe.epochs = 1;
  recipe.lr = 1e-9;
  const auto expect_notice = [](const testing::Outcome& outcome) {
    EXPECT_EQ(std::count(outcome.notices.begin(), outcome.notices.end(),
                         "3 batch norms had no statistics, such as 'a_bn': they have those of 96 training images"),
              1);
  };
  expect_notice(train_in(dir / "run", recipe));
  recipe.method = "sal";  // scales weights, and the statistics behind them
  expect_notice(train_in(dir / "sal", recipe));
  const torch::NoGradGuard no_grad;
  auto trained = last_module(dir / "run");
  module->eval();
  trained->eval();
  const auto x = torch::rand({16, 3, 32, 32}) * 2 - 1;
  const auto before = module->forward(x), after = trained->forward(x);
  EXPECT_LT(((after - before).abs().max() / before.std()).item<double>(), 0.3);
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
