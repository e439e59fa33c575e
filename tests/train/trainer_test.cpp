#include "onetap/train/trainer.h"

#include "onetap/base/cpus.h"
#include "onetap/data/source.h"
#include "onetap/graph/text.h"
#include "onetap/journal/attention_log.h"
#include "onetap/journal/metrics.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/resolve.h"
#include "tests/support/support.h"
#include "tests/train/training.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_resumes_bit_for_bit;
using testing::expect_same_run;
using testing::final_weights;
using testing::Outcome;
using testing::read_text;
using testing::small_recipe;
using testing::TempDir;
using testing::train_in;

const char* const kData = testing::kSmallData;

TEST(Trainer, WritesWhatARunDirectoryHolds) {
  const TempDir dir;
  EXPECT_EQ(train_in(dir / "run", small_recipe()).result, TrainOutcome::kFinished);
  const RunFiles files(dir / "run");
  EXPECT_EQ(files.read_config().width, 4);
  EXPECT_EQ(files.read_graph().node("layer1.0.conv1").method.name(), "sal");
  const auto lines = read_metrics(files.metrics());
  ASSERT_EQ(lines.size(), 6u);  // train and test of three epochs
  EXPECT_EQ(lines[5].split, "test");
  EXPECT_EQ(lines[5].step, 18);
  EXPECT_EQ(lines[5].epoch, 3);
  EXPECT_TRUE(lines[5].acc_hard.has_value());
  EXPECT_NEAR(lines[5].temperature, 0.02, 1e-9);
  EXPECT_LT(lines[4].loss, lines[0].loss);
  EXPECT_TRUE(fs::exists(files.checkpoints() / "last" / "state.json"));
}

TEST(Trainer, RecordsTheAttentionOfEveryEpoch) {
  const TempDir dir;
  train_in(dir / "run", small_recipe());
  const RunFiles files(dir / "run");
  const Graph graph = files.read_graph();
  const auto lines = read_attention(files.attention());
  ASSERT_EQ(lines.size(), 3u);
  for (const AttentionLine& line : lines) {
    ASSERT_EQ(line.layers.size(), 6u);  // two convolutions in each of three blocks
    for (const LayerAttention& layer : line.layers) {
      const Node& node = graph.node(layer.name);
      const auto sum = [](const auto& values) { return std::accumulate(values.begin(), values.end(), 0.0); };
      EXPECT_NEAR(sum(layer.mean_p), 1.0, 1e-3);
      EXPECT_NEAR(sum(layer.max_p), 1.0, 1e-3);
      EXPECT_EQ(sum(layer.kept), static_cast<double>(node.out * in_channels(graph, node)));
      EXPECT_EQ(layer.agreement.has_value(), line.epoch > 1);
    }
  }
  // At the last temperature the attention has made up its mind.
  EXPECT_GT(lines.back().layers[0].max_p.back(), lines.front().layers[0].max_p.back());
}

// In its last epoch a hardened run is the network that freezing makes, and no tap moves any more; by every engine.
TEST(Trainer, AHardenedRunTrainsTheKeptTapsAlone) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.t1 = 1;
  recipe.harden = 2.0 / 3;
  set_recipe_field(recipe, known_recipe_field("share", "share"), "4x4", "share");
  for (const EngineChoice engine : {EngineChoice::kPlain, EngineChoice::kFused, EngineChoice::kCaptured}) {
    recipe.engine = engine;
    const fs::path root = dir / std::string(choice_word(engine));
    train_in(root, recipe);
    const auto lines = read_metrics(RunFiles(root).metrics());
    EXPECT_EQ(lines[5].acc_hard, lines[5].acc_soft);
    EXPECT_NE(lines[4].loss, lines[2].loss);
    const auto attention = read_attention(RunFiles(root).attention());
    EXPECT_LT(attention[0].layers[0].max_p.back(), 1) << "soft before";
    for (const LayerAttention& layer : attention.back().layers) {
      EXPECT_EQ(layer.max_p.back(), 1) << layer.name << ": the share of slices in the last bin";
      EXPECT_EQ(layer.agreement, 1) << layer.name;
    }
  }
}

// Momentum and adaptive steps go on behind the last gradient, and would move taps that were fixed: a run's last network
// keeps the positions that it had at its first hard step. Learned densities and averages, too.
TEST(Trainer, NoTapMovesOnceTheyAreFixed) {
  const TempDir dir;
  const auto codes_at = [](const fs::path& run, int64_t step, KeptWeights weights) {
    const RunFiles files(run);
    nn::GraphModule module(files.read_graph());
    const auto all = CheckpointFolder(files.checkpoints()).list();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.state.step == step; });
    CheckpointFolder::load(*found, module, weights);
    std::vector<torch::Tensor> codes;
    for (const auto& trained : module->trained_layers()) codes.push_back(trained.layer->freeze().codes.flatten());
    return torch::cat(codes);
  };
  const auto expect_fixed = [&](const std::string& name, const Recipe& recipe) {
    const fs::path run = dir / name;
    train_in(run, recipe);
    const auto early = codes_at(run, 1, KeptWeights::kTrained);
    EXPECT_FALSE(early.equal(codes_at(run, 9, KeptWeights::kTrained))) << name << ": they moved before";
    for (const KeptWeights weights : {KeptWeights::kAveraged, KeptWeights::kTrained}) {
      const auto fixed = codes_at(run, 9, weights);
      for (int64_t step = 10; step <= 18; ++step) {
        EXPECT_TRUE(codes_at(run, step, weights).equal(fixed)) << name << " at step " << step;
      }
    }
  };
  Recipe recipe = small_recipe();
  recipe.t1 = 1;
  recipe.harden = 0.5;  // 9 of 18 steps
  recipe.lr = 0.5;
  recipe.momentum = 0.95;
  recipe.ema = 0.9;
  recipe.checkpoint_steps = 1;
  recipe.keep_checkpoints = 100;
  recipe.engine = EngineChoice::kFused;
  expect_fixed("fused", recipe);
  set_recipe_field(recipe, known_recipe_field("density", "density"), "0.7", "density");
  for (const EngineChoice engine : {EngineChoice::kPlain, EngineChoice::kCaptured}) {
    recipe.engine = engine;
    expect_fixed(choice_word(engine), recipe);
  }
  recipe.engine = EngineChoice::kPlain;
  recipe.optimizer = OptimizerChoice::kAdamW;
  recipe.lr = 0.02;
  expect_fixed("adamw", recipe);
}

// The engine on a CPU is LibTorch's ops in another order: the same run but for rounding.
TEST(Trainer, StepsOfTheEngineTrainAsPlainOnesDo) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.epochs = 1;
  recipe.accumulate = 3;  // and in parts that do not divide the batch
  recipe.cutout = 8;
  recipe.ema = 0.9;
  testing::expect_engines_train_alike(dir.path(), recipe);
}

TEST(Trainer, InsistingOnFusedStepsNamesTheObstacle) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.engine = EngineChoice::kFused;
  recipe.arch = "squeezenet";
  recipe.method = "conv";
  expect_error(ErrorKind::kUsage, "(conv): has a bias", [&] { train_in(dir / "run", recipe); });
}

TEST(Trainer, ResumedRunIsBitIdentical) {
  const TempDir dir;
  for (const EngineChoice engine : {EngineChoice::kPlain, EngineChoice::kFused, EngineChoice::kCaptured}) {
    const bool restart = engine != EngineChoice::kPlain;
    if (testing::kThreadSanitizer && restart) break;
    const std::string tag(choice_word(engine));
    Recipe recipe = small_recipe();
    recipe.engine = engine;
    if (engine == EngineChoice::kCaptured) {
      recipe.shortcut = Shortcut::kA;
      recipe.data = "shapes:train=90,test=40";  // a smaller last batch
    }
    recipe.restart_momentum = restart;
    recipe.nesterov = restart;
    recipe.label_smoothing = restart ? 0.1 : 0;
    recipe.ema = restart ? 0.9 : 0;
    recipe.accumulate = restart ? 2 : 1;
    // Stops inside epochs, at the end of one, and after a single step; fused steps are reported in portions.
    const auto sittings = restart ? std::vector<int64_t>{4, 2, 1} : std::vector<int64_t>{4, 2, 1, 5};
    expect_resumes_bit_for_bit(dir / (tag + "-whole"), dir / (tag + "-parts"), recipe, sittings);
    EXPECT_EQ(read_text(RunFiles(dir / (tag + "-whole")).attention()),
              read_text(RunFiles(dir / (tag + "-parts")).attention()));
  }
}

// Without batch norm, whose statistics are of a part, a batch in parts is the batch.
TEST(Trainer, PartsOfABatchAddUpToIt) {
  const TempDir dir;
  testing::write_text(dir / "net.txt",
                      "onetap-net 1\nx = input 3x32x32\nc = conv x out=6 kernel=3 stride=2 pad=1 bias=1\n"
                      "r = relu c\ns = conv r out=8 kernel=3 pad=1\np = gap s\nfc = linear p out=10\n");
  Recipe recipe = small_recipe();
  recipe.arch = (dir / "net.txt").string();
  recipe.width.reset();
  recipe.epochs = 1;
  train_in(dir / "whole", recipe);
  recipe.accumulate = 5;
  train_in(dir / "parts", recipe);
  const auto weights = [&](const char* run) {
    const Checkpoint last = CheckpointFolder(RunFiles(dir / run).checkpoints()).find("last");
    nn::GraphModule module(RunFiles(dir / run).read_graph());
    CheckpointFolder::load(last, module);
    return nn::state_of(*module);
  };
  const auto whole = weights("whole"), parts = weights("parts");
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(torch::allclose(whole[i].second, parts[i].second, 1e-4, 1e-6)) << whole[i].first;
  }
}

TEST(WeightAverage, FollowsItsFormulaAndLeavesTheModuleAsItWas) {
  torch::manual_seed(1);
  nn::GraphModule module(
      parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=1\nb = bn c\n"
                    "p = gap b\nfc = linear p out=2\n"));
  WeightAverage average(module, 0.7);
  const torch::NoGradGuard no_grad;
  double expected = module->parameters()[0].flatten()[0].item<double>();
  for (int64_t step = 1; step <= 30; ++step) {
    for (auto& parameter : module->parameters()) parameter.fill_(static_cast<double>(step));
    average.update(step);
    const double keep = std::min(0.7, (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
    expected = keep * expected + (1 - keep) * static_cast<double>(step);
  }
  const auto value = [&] { return module->parameters()[0].flatten()[0].item<double>(); };
  EXPECT_EQ(value(), 30);
  {
    const WeightAverage::Scope averaged(average);
    EXPECT_NEAR(value(), expected, 1e-4);
  }
  EXPECT_EQ(value(), 30);
}

// What is tested is what the checkpoint's model.safetensors holds, for those who read it.
TEST(Trainer, TheAverageIsWhatIsTestedAndKept) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.ema = 0.95;
  train_in(dir / "run", recipe);
  const RunFiles files(dir / "run");
  const Checkpoint last = CheckpointFolder(files.checkpoints()).find("last");
  nn::GraphModule module(files.read_graph());
  CheckpointFolder::load(last, module);
  module->set_temperature(last.state.temperature);
  const DataSource source = open_data(recipe.data);
  EvalOptions options;
  options.stream.view = recipe_view(recipe, module->graph(), source);
  const auto result = evaluate(module, *source.test, options);
  const auto logged = read_metrics(files.metrics()).back();
  EXPECT_EQ(result->hard.accuracy, *logged.acc_hard);
  EXPECT_NEAR(result->soft.loss, logged.loss, 1e-5);
  EXPECT_FALSE(read_text(last.path / "model.safetensors") == read_text(last.path / "training.safetensors"));
}

// LibTorch 1.13 ended such runs: a narrow shortcut with a stride, several threads, an odd batch.
TEST(Trainer, NarrowShortcutsOnSeveralThreads) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: LibTorch's own threads";
  const TempDir dir;
  for (const char* engine : {"plain", "fused"}) {
    Recipe recipe = small_recipe();
    recipe.data = "shapes:train=30,test=8";
    recipe.epochs = 2;
    recipe.batch_size = 15;
    recipe.threads = 2;
    recipe.engine = *parse_choice<EngineChoice>(engine);
    EXPECT_EQ(train_in(dir / engine, recipe).result, TrainOutcome::kFinished);
  }
}

TEST(Trainer, SeedsDiffer) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  train_in(dir / "a", recipe);
  recipe.seed = 1;
  train_in(dir / "b", recipe);
  EXPECT_FALSE(final_weights(dir / "a") == final_weights(dir / "b"));
}

TEST(Trainer, AFinishedRunStaysAsItIs) {
  const TempDir dir;
  train_in(dir / "run", small_recipe());
  const std::string metrics = read_text(RunFiles(dir / "run").metrics());
  EXPECT_EQ(train_in(dir / "run", small_recipe()).result, TrainOutcome::kFinished);
  EXPECT_EQ(read_text(RunFiles(dir / "run").metrics()), metrics);
}

TEST(Trainer, ADamagedCheckpointIsPassedOver) {
  const TempDir dir;
  train_in(dir / "whole", small_recipe());
  train_in(dir / "run", small_recipe(), 8);
  const auto checkpoints = CheckpointFolder(RunFiles(dir / "run").checkpoints()).list();
  ASSERT_EQ(checkpoints.size(), 2u);
  fs::resize_file(checkpoints[0].path / "model.safetensors", 1000);
  const Outcome outcome = train_in(dir / "run", small_recipe());
  ASSERT_FALSE(outcome.notices.empty());
  EXPECT_NE(outcome.notices[0].find("damaged"), std::string::npos);
  expect_same_run(dir / "whole", dir / "run");
}

TEST(Trainer, AllCheckpointsDamagedStartsAgainCleanly) {
  const TempDir dir;
  train_in(dir / "whole", small_recipe());
  train_in(dir / "run", small_recipe(), 8);
  for (const Checkpoint& checkpoint : CheckpointFolder(RunFiles(dir / "run").checkpoints()).list()) {
    fs::resize_file(checkpoint.path / "optimizer.safetensors", 1000);  // the model loads, then this fails
  }
  train_in(dir / "run", small_recipe());
  expect_same_run(dir / "whole", dir / "run");
}

TEST(Trainer, CheckpointsCanBeRarer) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.eval_every = 3;
  recipe.checkpoint_epochs = 2;
  train_in(dir / "whole", recipe);
  std::vector<int64_t> steps;
  for (const Checkpoint& one : CheckpointFolder(RunFiles(dir / "whole").checkpoints()).list()) {
    steps.push_back(one.state.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{18, 12}));
  // Stopped at the end of an epoch that has none, it gets one.
  EXPECT_EQ(train_in(dir / "parts", recipe, 6).result, TrainOutcome::kInterrupted);
  EXPECT_EQ(CheckpointFolder(RunFiles(dir / "parts").checkpoints()).find("last").state.step, 6);
  train_in(dir / "parts", recipe);
  expect_same_run(dir / "whole", dir / "parts");
}

TEST(Trainer, KeepsTheNewestAndTheBest) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.epochs = 6;
  recipe.checkpoint_steps = 2;
  train_in(dir / "run", recipe);
  const CheckpointFolder folder = CheckpointFolder(RunFiles(dir / "run").checkpoints());
  const auto all = folder.list();
  EXPECT_LE(all.size(), 3u);
  EXPECT_GE(all.size(), 2u);
  EXPECT_EQ(all[0].state.step, 36);
  const Checkpoint best = folder.find("best");
  double best_accuracy = 0;
  int64_t best_step = 0;
  for (const MetricLine& line : read_metrics(RunFiles(dir / "run").metrics())) {
    if (line.split == "test" && *line.acc_hard > best_accuracy) {
      best_accuracy = *line.acc_hard;
      best_step = line.step;
    }
  }
  EXPECT_EQ(best.state.step, best_step);
  expect_error(ErrorKind::kData, "no checkpoint of step 7", [&] { folder.find("7"); });
  expect_error(ErrorKind::kUsage, "expected last, best or a step number", [&] { folder.find("newest"); });
}

TEST(Trainer, AnExplodingLossStopsWithTheStepAndTheLastCheckpoint) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.lr = 1e30;
  recipe.momentum = 0;
  expect_error(ErrorKind::kFailure, "; there is no checkpoint yet", [&] { train_in(dir / "run", recipe); });
}

TEST(Trainer, EvalEveryTestsTheLastEpochToo) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.eval_every = 2;
  train_in(dir / "run", recipe);
  std::vector<int64_t> tested;
  for (const MetricLine& line : read_metrics(RunFiles(dir / "run").metrics())) {
    if (line.split == "test") tested.push_back(line.epoch);
  }
  EXPECT_EQ(tested, (std::vector<int64_t>{2, 3}));
}

TEST(RunDirectory, NeverMixesRuns) {
  const TempDir dir;
  const Recipe recipe = resolve_recipe(small_recipe(), open_data(kData));
  const Graph graph = recipe_network(recipe, 10, 32);
  const auto create = [&](const fs::path& root) { RunDirectory::create(root, recipe, graph, {}); };
  create(dir / "run");
  expect_error(ErrorKind::kUsage, "already holds a run", [&] { create(dir / "run"); });
  testing::write_text(dir / "other" / "thesis.tex", "years of work");
  expect_error(ErrorKind::kUsage, "with 'thesis.tex' in it", [&] { create(dir / "other"); });
  testing::write_text(dir / "file", "");
  expect_error(ErrorKind::kUsage, "got a file", [&] { create(dir / "file"); });
  expect_error(ErrorKind::kUsage, "cannot create", [&] { create(dir / "file" / "run"); });
  expect_error(ErrorKind::kData, "expected a run directory", [&] { RunDirectory::resume(dir / "nowhere"); });
  const RunDirectory held = RunDirectory::resume(dir / "run");
  expect_error(ErrorKind::kFailure, "in use by process", [&] { RunDirectory::resume(dir / "run"); });
}

TEST(Evaluate, CountsRightAnswersOverWholeAndPartialBatches) {
  const DataSource source = open_data(kData);
  Recipe recipe = resolve_recipe(small_recipe(), source);
  torch::manual_seed(3);
  nn::GraphModule module(recipe_network(recipe, 10, 32));
  EvalOptions options;
  options.stream.view = recipe_view(recipe, module->graph(), source);
  // Counted by hand, one image at a time.
  int64_t right = 0;
  {
    const torch::NoGradGuard no_grad;
    module->eval();
    StreamOptions single = options.stream;
    single.batch_size = 1;
    BatchStream images(*source.test, single);
    for (Batch batch; images.next(batch);) {
      right += module->forward(batch.images).argmax(1)[0].item<int64_t>() == batch.labels[0].item<int64_t>() ? 1 : 0;
    }
    module->train();
  }
  std::optional<EvalResult> reference;
  for (const int64_t batch : {1, 7, 40, 100}) {
    options.stream.batch_size = batch;
    const auto result = evaluate(module, *source.test, options);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->images, 40);
    if (!reference) reference = result;
    EXPECT_EQ(result->soft.accuracy, static_cast<double>(right) / 40);
    EXPECT_EQ(result->hard.accuracy, reference->hard.accuracy);
    EXPECT_NEAR(result->soft.loss, reference->soft.loss, 1e-5);
  }
  EXPECT_TRUE(module->is_training());
  options.progress = [](int64_t) { return false; };
  EXPECT_FALSE(evaluate(module, *source.test, options).has_value());
}

TEST(Resolve, SharesTheCpusAmongProcesses) {
  const DataSource source = open_data(kData);
  Recipe recipe = small_recipe();
  recipe.threads = 0;
  EXPECT_EQ(resolve_recipe(recipe, source).threads, available_cpus());
  EXPECT_EQ(resolve_recipe(recipe, source, available_cpus()).threads, 1);
  EXPECT_EQ(resolve_recipe(recipe, source, 1000000).threads, 1) << "never none";
  recipe.threads = 3;
  EXPECT_EQ(resolve_recipe(recipe, source).threads, 3);
}

TEST(Resolve, ChecksNetworkAgainstData) {
  const DataSource source = open_data(kData);
  const Graph wrong = parse_network("onetap-net 1\nx = input 1x8x8\np = gap x\nfc = linear p out=10\n");
  expect_error(ErrorKind::kUsage, "square colour images", [&] { check_network(wrong, source); });
  expect_error(ErrorKind::kUsage, "expected device", [] { parse_device("gpu"); });
  expect_error(ErrorKind::kUsage, torch::cuda::is_available() ? "expected a device below" : "expected a GPU",
               [] { parse_device("cuda:99"); });
}

}  // namespace
}  // namespace onetap
