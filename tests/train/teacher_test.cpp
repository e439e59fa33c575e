// Runs that learn from a teacher, mix images and take their statistics anew.
#include "onetap/train/teacher.h"

#include "onetap/batches/recalibrate.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/train/evaluate.h"
#include "tests/train/training.h"

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_resumes_bit_for_bit;
using testing::small_recipe;
using testing::TempDir;
using testing::train_in;

Recipe teacher_recipe() {
  Recipe recipe = small_recipe();
  recipe.width = 6;
  recipe.epochs = 1;
  recipe.seed = 3;
  return recipe;
}

Recipe taught_recipe(const fs::path& teacher) {
  Recipe recipe = small_recipe();
  recipe.teacher = teacher.string();
  recipe.teacher_weight = 0.6;
  recipe.teacher_temperature = 3;
  recipe.mixup = 0.4;
  recipe.cutmix = 1;
  recipe.jitter = 0.2;
  recipe.label_smoothing = 0.1;
  recipe.t_end = 0.7;
  recipe.logit_decay = 0.2;
  recipe.recalibrate = 48;
  return recipe;
}

nn::GraphModule last_network(const fs::path& run, KeptWeights weights = KeptWeights::kAveraged) {
  const RunFiles files(run);
  nn::GraphModule module(files.read_graph());
  CheckpointFolder(files.checkpoints()).open("last", module, {}, weights);
  return module;
}

LoadedTeacher load(const Recipe& recipe, const fs::path& teacher) {
  Recipe asks = recipe;
  asks.teacher = teacher.string();
  const DataSource source = open_data(recipe.data);
  return load_teacher(asks, recipe_network(recipe, static_cast<int64_t>(source.classes.size()), 32), source, {});
}

TEST(Teacher, AnswersAsTheHardNetworkOfItsRun) {
  const TempDir dir;
  train_in(dir / "teacher", teacher_recipe());
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto images = torch::randn({4, 3, 32, 32});
  nn::GraphModule module = last_network(dir / "teacher");
  module->eval();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  const auto expected = module->forward(images);
  LoadedTeacher teacher = load(small_recipe(), dir / "teacher");
  EXPECT_TRUE(torch::allclose(teacher.module->forward(images), expected, 1e-4, 1e-5));
  EXPECT_TRUE(teacher.module->trained_layers().empty());
  EXPECT_EQ(teacher.checksum.size(), 64u);
  // A checkpoint by its own path, and by a link to it.
  for (const char* name : {"step-000000006", "last", "best"}) {
    EXPECT_EQ(load(small_recipe(), dir / "teacher/checkpoints" / name).checksum, teacher.checksum) << name;
  }
}

TEST(Teacher, IsRefusedBeforeAnythingIsWritten) {
  const TempDir dir;
  const Recipe recipe = small_recipe();
  expect_error(ErrorKind::kData, "cannot open", [&] { load(recipe, dir / "nowhere"); });
  testing::write_text(dir / "notes.txt", "nothing to learn from");
  expect_error(ErrorKind::kData, "expected a run, a checkpoint of one or a .tap file",
               [&] { load(recipe, dir / "notes.txt"); });
  fs::create_directories(dir / "empty");
  expect_error(ErrorKind::kData, "expected a run, a checkpoint of one or a .tap file",
               [&] { load(recipe, dir / "empty"); });

  Recipe other = teacher_recipe();
  testing::write_text(dir / "net.txt",
                      "onetap-net 1\nx = input 3x40x40\nc = conv x out=6 kernel=3 stride=2 pad=1\n"
                      "b = bn c\np = gap b\nfc = linear p out=10\n");
  other.arch = (dir / "net.txt").string();
  other.width.reset();
  other.method = "conv";
  other.pad = 8;
  train_in(dir / "larger", other);
  expect_error(ErrorKind::kUsage, "expected a network for images of 3x32x32, got one for 3x40x40",
               [&] { load(recipe, dir / "larger"); });

  train_in(dir / "teacher", teacher_recipe());
  const Checkpoint last = CheckpointFolder(RunFiles(dir / "teacher").checkpoints()).find("last");
  fs::resize_file(last.path / "model.safetensors", 1000);
  expect_error(ErrorKind::kData, "no complete checkpoint", [&] { load(recipe, dir / "teacher"); });
}

// The engine on a CPU is LibTorch's ops in another order: the same run but for rounding.
TEST(Teacher, StepsOfTheEngineLearnAsPlainOnesDo) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  train_in(dir / "teacher", teacher_recipe());
  Recipe recipe = taught_recipe(dir / "teacher");
  recipe.epochs = 1;
  recipe.accumulate = 3;
  testing::expect_engines_train_alike(dir.path(), recipe);
}

TEST(Teacher, AResumedRunIsBitIdentical) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  train_in(dir / "teacher", teacher_recipe());
  for (const EngineChoice engine : {EngineChoice::kPlain, EngineChoice::kFused, EngineChoice::kCaptured}) {
    const std::string tag(choice_word(engine));
    Recipe recipe = taught_recipe(dir / "teacher");
    recipe.engine = engine;
    recipe.ema = engine == EngineChoice::kPlain ? 0 : 0.9;
    expect_resumes_bit_for_bit(dir / (tag + "-whole"), dir / (tag + "-parts"), recipe, {4, 2, 1});
  }
}

TEST(Teacher, AnotherOneIsRefusedWhenARunIsResumed) {
  const TempDir dir;
  train_in(dir / "teacher", teacher_recipe());
  const Recipe recipe = taught_recipe(dir / "teacher");
  EXPECT_EQ(train_in(dir / "run", recipe, 4).result, TrainOutcome::kInterrupted);
  fs::remove_all(dir / "teacher");
  Recipe other = teacher_recipe();
  other.seed = 4;
  train_in(dir / "teacher", other);
  expect_error(ErrorKind::kData, "expected the teacher that this run began with",
               [&] { train_in(dir / "run", recipe); });
  fs::remove_all(dir / "teacher");
  expect_error(ErrorKind::kData, "cannot open", [&] { train_in(dir / "run", recipe); });
  train_in(dir / "teacher", teacher_recipe());  // the same again, bit by bit
  EXPECT_EQ(train_in(dir / "run", recipe).result, TrainOutcome::kFinished);
  // A run that is finished needs its teacher no more.
  fs::remove_all(dir / "teacher");
  EXPECT_EQ(train_in(dir / "run", recipe).result, TrainOutcome::kFinished);
}

// With the teacher alone, a student that starts from its weights has nothing left to learn; without batch norm, which
// goes by the batch in training, nothing else differs.
TEST(Teacher, AStudentThatIsItsTeacherHasNoLoss) {
  const TempDir dir;
  testing::write_text(dir / "net.txt",
                      "onetap-net 1\nx = input 3x32x32\nc = conv x out=6 kernel=3 stride=2 pad=1 bias=1\n"
                      "r = relu c\np = gap r\nfc = linear p out=10\n");
  Recipe recipe = small_recipe();
  recipe.arch = (dir / "net.txt").string();
  recipe.width.reset();
  recipe.method = "conv";
  recipe.epochs = 1;
  train_in(dir / "teacher", recipe);
  recipe.init = recipe.teacher = (dir / "teacher").string();
  recipe.teacher_weight = 1;
  train_in(dir / "same", recipe);
  EXPECT_NEAR(read_metrics(RunFiles(dir / "same").metrics())[0].loss, 0, 1e-6);
  recipe.init.clear();
  recipe.seed = 1;
  train_in(dir / "other", recipe);
  EXPECT_GT(read_metrics(RunFiles(dir / "other").metrics())[0].loss, 1e-3);
}

// Of the averaged network, and that of the last step, which the checkpoint has beside it.
TEST(Recalibration, IsThatOfTheNetworkThatIsTestedAndKept) {
  for (const double ema : {0.0, 0.9}) {
    const TempDir dir;
    Recipe recipe = small_recipe();
    recipe.ema = ema;
    train_in(dir / "without", recipe);
    recipe.recalibrate = 64;
    train_in(dir / "with", recipe);
    nn::GraphModule expected = last_network(dir / "without"), got = last_network(dir / "with");
    const DataSource source = open_data(recipe.data);
    RecalibrateOptions options;
    options.stream =
        recipe_stream(RunFiles(dir / "with").read_config(), recipe_view(recipe, got->graph(), source), /*train=*/true);
    options.images = 64;
    EXPECT_EQ(recalibrate(expected, *source.train, options), 64);
    const auto wanted = nn::state_of(*expected), kept = nn::state_of(*got);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(wanted[i].second.equal(kept[i].second)) << wanted[i].first << ", ema " << ema;
    }
    // What the last line of the metrics says was measured with them.
    got->set_temperature(0.02);
    EvalOptions eval;
    eval.stream.view = options.stream.view;
    EXPECT_EQ(evaluate(got, *source.test, eval)->hard.accuracy,
              *read_metrics(RunFiles(dir / "with").metrics()).back().acc_hard);
  }
}

TEST(Augmentation, StrongSaysItsValuesUnlessTheyAreGiven) {
  const DataSource source = open_data(testing::kSmallData);
  Recipe recipe = small_recipe();
  recipe.augment = AugmentChoice::kStrong;
  const AugmentOptions usual = recipe_augment(resolve_recipe(recipe, source));
  EXPECT_EQ(usual.kind, Augment::kPadCrop);
  EXPECT_EQ(usual.cutout, 8);  // of 32 pixels
  EXPECT_FLOAT_EQ(usual.jitter, 0.3f);
  recipe.cutout = 5;
  recipe.jitter = 0.1;
  const AugmentOptions given = recipe_augment(resolve_recipe(recipe, source));
  EXPECT_EQ(given.cutout, 5);
  EXPECT_FLOAT_EQ(given.jitter, 0.1f);
}

TEST(KeptWeights, OfARunWithAnAverageAreBothThere) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.ema = 0.9;
  train_in(dir / "run", recipe);
  recipe.ema = 0;
  train_in(dir / "plain", recipe);
  const auto state = [&](const char* run, KeptWeights weights) {
    return nn::tensor_bytes(nn::state_of(*last_network(dir / run, weights)));
  };
  EXPECT_FALSE(state("run", KeptWeights::kAveraged) == state("run", KeptWeights::kTrained));
  // An average changes nothing of the training itself.
  EXPECT_TRUE(state("run", KeptWeights::kTrained) == state("plain", KeptWeights::kAveraged));
  EXPECT_TRUE(state("plain", KeptWeights::kTrained) == state("plain", KeptWeights::kAveraged));
}

}  // namespace
}  // namespace onetap
