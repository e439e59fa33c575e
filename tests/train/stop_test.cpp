// A training that is told to stop while it waits for data that do not come.
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/train/sensitivity.h"
#include "tests/graph/small_nets.h"
#include "tests/support/blocked_dataset.h"
#include "tests/train/training.h"

#include <chrono>
#include <thread>

namespace onetap {
namespace {

using testing::BlockedDataset;
using testing::TempDir;

constexpr int64_t kTrainImages = 40, kBatch = 8;

// Image `train_blocked` or `test_blocked` hangs; negative: none. `epochs_before`: that of training, after so many
// epochs.
struct Source {
  Source(int64_t train_blocked, int64_t test_blocked, int64_t epochs_before = 0)
      : train(std::make_shared<const BlockedDataset>(train_blocked, kTrainImages, epochs_before)),
        test(std::make_shared<const BlockedDataset>(test_blocked, 20)) {
    source.train = train;
    source.test = test;
    source.classes.assign(10, "class");
    // Images that may be of any size are streamed, whatever the engine.
    source.image_size = 0;
  }
  ~Source() {
    train->release();
    test->release();
  }

  std::shared_ptr<const BlockedDataset> train, test;
  DataSource source;
};

Recipe small_recipe(EngineChoice engine) {
  Recipe recipe;
  recipe.arch = "resnet8";
  recipe.width = 4;
  recipe.image_size = 32;
  recipe.data = "shapes";
  recipe.epochs = 2;
  recipe.batch_size = kBatch;
  recipe.threads = 1;
  recipe.workers = 2;
  recipe.device = "cpu";
  recipe.engine = engine;
  return recipe;
}

struct Result {
  TrainOutcome outcome = TrainOutcome::kFinished;
  double seconds_to_stop = 0;
};

// Trains, and asks to stop as soon as a worker hangs in `blocked` (if any).
Result train_on(const std::filesystem::path& root, const Recipe& wanted, const DataSource& source,
                const BlockedDataset* blocked) {
  const Recipe recipe = resolve_recipe(wanted, source);
  const Graph graph = recipe_network(recipe, 10, 32);
  const auto run = RunFiles(root).holds_run() ? RunDirectory::resume(root)
                                              : RunDirectory::create(root, recipe, graph, {{"onetap", "test"}});
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point asked;
  std::thread asks([&] {
    if (blocked == nullptr) return;
    blocked->wait_for_reader();
    // Until the loop has used up what came before.
    std::this_thread::sleep_for(std::chrono::milliseconds(testing::kThreadSanitizer ? 5000 : 500));
    asked = std::chrono::steady_clock::now();
    stop = true;
  });
  Result result;
  result.outcome = train(run, recipe, source, {}, stop);
  asks.join();
  result.seconds_to_stop = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
  return result;
}

Result train_on(const std::filesystem::path& root, EngineChoice engine, const DataSource& source,
                const BlockedDataset* blocked) {
  return train_on(root, small_recipe(engine), source, blocked);
}

RunState last_state(const std::filesystem::path& root) {
  return CheckpointFolder(RunFiles(root).checkpoints()).find("last").state;
}

class Stop : public ::testing::TestWithParam<EngineChoice> {};

// The first image of a batch, in the order of the epoch's shuffle.
int64_t image_of_batch(int64_t batch, uint32_t epoch = 0) {
  return permutation(kTrainImages, Random(Recipe().seed, Purpose::kShuffle, epoch))
      .at(static_cast<size_t>(batch * kBatch));
}

TEST_P(Stop, WinsOverAReadThatHangs) {
  const TempDir dir;
  const Source whole(-1, -1);
  EXPECT_EQ(train_on(dir / "whole", GetParam(), whole.source, nullptr).outcome, TrainOutcome::kFinished);
  // Before the first step, and inside the epoch (with the engine: inside a portion of steps, and between two).
  for (const int64_t steps : {0, 2, 3}) {
    const auto root = dir / ("stopped-" + std::to_string(steps));
    {
      const Source hangs(image_of_batch(steps), -1);
      const Result result = train_on(root, GetParam(), hangs.source, hangs.train.get());
      EXPECT_EQ(result.outcome, TrainOutcome::kInterrupted);
      EXPECT_LT(result.seconds_to_stop, 60);
      EXPECT_EQ(last_state(root).step, steps);
    }
    // What it left is as good as any: the run ends as one that was never stopped.
    EXPECT_EQ(train_on(root, GetParam(), whole.source, nullptr).outcome, TrainOutcome::kFinished);
    testing::expect_same_run(root, dir / "whole");
  }
}

TEST_P(Stop, WinsOverATestImageThatHangs) {
  const TempDir dir;
  const Source hangs(-1, 12);
  const Result result = train_on(dir / "run", GetParam(), hangs.source, hangs.test.get());
  EXPECT_EQ(result.outcome, TrainOutcome::kInterrupted);
  EXPECT_LT(result.seconds_to_stop, 60);
  EXPECT_EQ(last_state(dir / "run").step, kTrainImages / kBatch);
  EXPECT_FALSE(last_state(dir / "run").epoch_logged);
}

INSTANTIATE_TEST_SUITE_P(Engines, Stop,
                         ::testing::Values(EngineChoice::kPlain, EngineChoice::kCaptured, EngineChoice::kFused),
                         [](const auto& tested) { return std::string(choice_word(tested.param)); });

// Before the first step of the second epoch: the first one is not tested and logged again.
TEST_P(Stop, BetweenTwoEpochsIsTheEndOfTheFirst) {
  const TempDir dir;
  const Source whole(-1, -1);
  train_on(dir / "whole", GetParam(), whole.source, nullptr);
  {
    const Source hangs(image_of_batch(0, 1), -1, /*epochs_before=*/1);
    EXPECT_EQ(train_on(dir / "run", GetParam(), hangs.source, hangs.train.get()).outcome, TrainOutcome::kInterrupted);
    EXPECT_EQ(last_state(dir / "run").step, kTrainImages / kBatch);
    EXPECT_TRUE(last_state(dir / "run").epoch_logged);
    EXPECT_EQ(CheckpointFolder(RunFiles(dir / "run").checkpoints()).list().size(), 1u);
  }
  EXPECT_EQ(train_on(dir / "run", GetParam(), whole.source, nullptr).outcome, TrainOutcome::kFinished);
  testing::expect_same_run(dir / "run", dir / "whole");
}

// A run that resumes and does no step has nothing to save: the checkpoint it came from stays in its place.
TEST(StopTwice, LeavesTheCheckpointAsItIs) {
  const TempDir dir;
  const Source hangs(image_of_batch(3), -1);
  const auto checkpoint = dir.path() / "run" / "checkpoints" / "step-000000003-open" / "state.json";
  std::filesystem::file_time_type written;
  for (const bool first : {true, false}) {
    EXPECT_EQ(train_on(dir / "run", EngineChoice::kPlain, hangs.source, hangs.train.get()).outcome,
              TrainOutcome::kInterrupted);
    ASSERT_TRUE(std::filesystem::exists(checkpoint));
    if (first) written = std::filesystem::last_write_time(checkpoint);
  }
  EXPECT_EQ(std::filesystem::last_write_time(checkpoint), written);
}

// While batch norms of an imported network get statistics: without any image, and with some of them. Nothing is kept of
// it, and the run starts over.
TEST_P(Stop, BeforeAllBatchNormsHaveStatisticsLeavesNothing) {
  const TempDir dir;
  Recipe recipe = small_recipe(GetParam());
  const Source whole(-1, -1);
  {
    const nn::GraphModule module(recipe_network(resolve_recipe(recipe, whole.source), 10, 32));
    const torch::NoGradGuard no_grad;
    for (auto& buffer : module->named_buffers()) {
      if (glob_match("*.running_var", buffer.key())) buffer.value().fill_(kPlainNormVariance);
    }
    recipe.init = (dir / "imported.safetensors").string();
    write_file_atomic(recipe.init, nn::tensor_bytes(nn::state_of(*module)));
  }
  EXPECT_EQ(train_on(dir / "whole", recipe, whole.source, nullptr).outcome, TrainOutcome::kFinished);
  for (const int64_t batches : {0, 3}) {
    const auto root = dir / ("stopped-" + std::to_string(batches));
    {
      const Source hangs(image_of_batch(batches), -1);
      const Result result = train_on(root, recipe, hangs.source, hangs.train.get());
      EXPECT_EQ(result.outcome, TrainOutcome::kInterrupted);
      EXPECT_LT(result.seconds_to_stop, 60);
      EXPECT_TRUE(CheckpointFolder(RunFiles(root).checkpoints()).list().empty());
    }
    EXPECT_EQ(train_on(root, recipe, whole.source, nullptr).outcome, TrainOutcome::kFinished);
    testing::expect_same_run(root, dir / "whole");
  }
}

TEST(StopSensitivity, EndsTheWait) {
  const Source hangs(-1, 12);
  torch::manual_seed(1);
  nn::GraphModule module(testing::small_resnet(sal_method()));
  SensitivityOptions options;
  options.stream.view.size = 32;
  options.stream.batch_size = 5;
  options.stream.stopped = [] { return true; };
  EXPECT_FALSE(measure_sensitivity(module, *hangs.test, options).has_value());
}

}  // namespace
}  // namespace onetap
