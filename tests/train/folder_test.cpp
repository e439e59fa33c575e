// Training on image folders, by plain and by fused steps.
#include "onetap/fused/ops.h"
#include "onetap/journal/metrics.h"
#include "onetap/train/checkpoint.h"
#include "tests/support/stripes.h"
#include "tests/train/training.h"

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::TempDir;

Recipe stripe_recipe(const fs::path& data, const char* engine) {
  Recipe recipe;
  recipe.arch = "resnet8";
  recipe.width = 4;
  recipe.image_size = 16;
  recipe.data = "folder:" + data.string();
  recipe.epochs = 2;
  recipe.batch_size = 8;
  recipe.lr = 0.02;
  recipe.threads = 1;
  recipe.workers = 2;
  recipe.device = "cpu";
  recipe.engine = *parse_choice<EngineChoice>(engine);
  return recipe;
}

TEST(FolderTraining, FusedStepsFromAStreamAreThePlainOnes) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: its threads are tested above";
  const TempDir dir;
  testing::write_stripes(dir / "data", 36, 13);
  testing::train_in(dir / "plain", stripe_recipe(dir / "data", "plain"));
  testing::train_in(dir / "fused", stripe_recipe(dir / "data", "fused"));
  const auto plain = read_metrics(RunFiles(dir / "plain").metrics());
  const auto fused = read_metrics(RunFiles(dir / "fused").metrics());
  ASSERT_EQ(plain.size(), 4u);
  ASSERT_EQ(fused.size(), 4u);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i].loss, fused[i].loss, 1e-4 * plain[i].loss) << i;
    EXPECT_EQ(plain[i].acc_soft, fused[i].acc_soft) << i;
    EXPECT_EQ(plain[i].acc_hard, fused[i].acc_hard) << i;
    for (const MetricLine& line : {plain[i], fused[i]}) {
      EXPECT_EQ(line.data_wait.has_value(), line.split == "train");
      EXPECT_TRUE(line.data_wait.value_or(0) >= 0 && line.data_wait.value_or(0) <= 1);
    }
  }
}

// Uploads, crops and captured graphs together: steps on a GPU are those on a CPU, but for rounding.
TEST(FolderTraining, AGpuStepsAsACpuDoes) {
  if (!torch::cuda::is_available() || fused::cuda_ops() == nullptr) GTEST_SKIP() << "skipped: no GPU";
  const TempDir dir;
  testing::write_stripes(dir / "data", 36, 13);
  testing::train_in(dir / "cpu", stripe_recipe(dir / "data", "plain"));
  const auto expected = read_metrics(RunFiles(dir / "cpu").metrics());
  for (const char* engine : {"plain", "captured", "fused"}) {
    Recipe recipe = stripe_recipe(dir / "data", engine);
    recipe.device = "cuda";
    recipe.precision = Precision::kFp32;
    testing::train_in(dir / engine, recipe);
    const auto got = read_metrics(RunFiles(dir / engine).metrics());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].loss, expected[i].loss, 5e-3 * expected[i].loss) << engine << " " << i;
    }
  }
}

TEST(FolderTraining, ResumedInsideAnEpochIsBitIdentical) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: its threads are tested above";
  const TempDir dir;
  testing::write_stripes(dir / "data", 36, 13);
  const Recipe recipe = stripe_recipe(dir / "data", "fused");
  testing::train_in(dir / "whole", recipe);
  const auto stands_at = [&] {
    return CheckpointFolder(RunFiles(dir / "parts").checkpoints()).find("last").state.step;
  };
  // Five steps an epoch. The first report of a sitting comes after one step, so these are stopped inside the first one;
  // one that began again instead of resuming would end with the same weights.
  for (const int64_t step : {1, 2, 3}) {
    const auto outcome = testing::train_in(dir / "parts", recipe, /*stop_after=*/1);
    EXPECT_EQ(outcome.result, TrainOutcome::kInterrupted);
    EXPECT_EQ(stands_at(), step);
  }
  const auto outcome = testing::train_in(dir / "parts", recipe);
  ASSERT_EQ(outcome.notices.size(), 1u);
  EXPECT_EQ(outcome.notices[0].rfind("resuming after step 3 of 10", 0), 0u) << outcome.notices[0];
  EXPECT_EQ(outcome.result, TrainOutcome::kFinished);
  EXPECT_EQ(stands_at(), 10);
  EXPECT_TRUE(testing::final_weights(dir / "whole") == testing::final_weights(dir / "parts"));
}

}  // namespace
}  // namespace onetap
