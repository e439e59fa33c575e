// Image folders on their way into a network: whole batches, packed ones, plain and fused steps.
#include "onetap/data/folder.h"

#include "onetap/fused/feed.h"
#include "onetap/fused/ops.h"
#include "onetap/fused/source.h"
#include "onetap/journal/metrics.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/loader.h"
#include "onetap/train/resolve.h"
#include "onetap/train/trainer.h"
#include "tests/support/images.h"
#include "tests/support/support.h"
#include "tests/train/training.h"

#include <cmath>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::TempDir;

// Two kinds of stripes, in JPEG and PNG files of many sizes; some JPEGs are large enough to be reduced.
void write_stripes(const fs::path& root, int train, int test) {
  for (const bool training : {true, false}) {
    for (int i = 0; i < (training ? train : test); ++i) {
      const int width = 24 + 37 * (i % 5), height = 30 + 29 * (i % 4);
      std::vector<uint8_t> rgb;
      Random random(3, Purpose::kTest, static_cast<uint32_t>(i), training ? 1 : 0);
      const float phase = random.uniform(0, 6), slope = random.uniform(0.15f, 0.3f);
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const float along = static_cast<float>(i % 2 == 0 ? x : y);
          for (int c = 0; c < 3; ++c) {
            rgb.push_back(static_cast<uint8_t>(120 + 60 * std::sin(slope * along + phase) + random.uniform(-9, 9)));
          }
        }
      }
      const bool png = i % 3 == 0;
      const std::string name = std::to_string(i) + (png ? ".png" : ".jpg");
      testing::write_text(root / (training ? "train" : "val") / (i % 2 == 0 ? "across" : "down") / name,
                          png ? testing::png_bytes(rgb, width, height) : testing::jpeg_bytes(rgb, width, height));
    }
  }
}

StreamOptions stripe_stream(const DataSource& source, bool train, Augment kind) {
  StreamOptions stream;
  stream.view = {24, source.normalisation};
  stream.batch_size = 7;
  stream.workers = 3;
  stream.train = train;
  stream.augment.kind = kind;
  stream.augment.pad = 6;
  stream.augment.cutout = 9;
  stream.seed = 5;
  stream.epoch = 2;
  return stream;
}

TEST(PackedBatches, BecomeTheViewsThatWorkersMake) {
  const TempDir dir;
  write_stripes(dir.path(), 24, 9);
  const DataSource source = open_folder(dir.path());
  std::vector<std::pair<std::unique_ptr<fused::Ops>, torch::Device>> all;
  all.emplace_back(fused::reference_ops(), torch::kCPU);
  if (torch::cuda::is_available() && fused::cuda_ops() != nullptr) all.emplace_back(fused::cuda_ops(), torch::kCUDA);
  for (const auto& [ops, device] : all) {
    for (const Augment kind : {Augment::kResizedCrop, Augment::kPadCrop, Augment::kNone}) {
      StreamOptions options = stripe_stream(source, true, kind);
      BatchStream whole(*source.train, options);
      options.packed = true;
      options.pinned = device.is_cuda();
      options.workers = 2;
      fused::Feed feed(std::make_unique<BatchStream>(*source.train, options), device);
      Batch batch;
      fused::PackedBatch packed;
      int64_t images = 0;
      while (whole.next(batch)) {
        ASSERT_TRUE(feed.next(packed));
        const int64_t count = batch.labels.size(0);
        const auto on_device = torch::TensorOptions(torch::kFloat32).device(device);
        const auto got = torch::full({count, 8, 24, 24}, 9.0, on_device).contiguous(torch::MemoryFormat::ChannelsLast);
        ops->crop(packed, options.view, got);
        EXPECT_TRUE(packed.labels.cpu().equal(batch.labels));
        const auto host = got.cpu();
        if (device.is_cuda()) {
          EXPECT_LT((host.narrow(1, 0, 3) - batch.images).abs().max().item<double>(), 2e-5);
        } else {
          EXPECT_TRUE(host.narrow(1, 0, 3).equal(batch.images));
        }
        EXPECT_EQ(host.narrow(1, 3, 5).abs().max().item<double>(), 0);
        images += count;
      }
      EXPECT_FALSE(feed.next(packed));
      EXPECT_EQ(images, 24);
      EXPECT_GE(feed.waited(), 0);
    }
  }
}

// Places in a sample are those of the step, whichever part of it a rank was given.
TEST(PackedBatches, RanksSampleTheirPartOfAStep) {
  const TempDir dir;
  write_stripes(dir.path(), 20, 2);
  const DataSource source = open_folder(dir.path());
  const StreamOptions whole = stripe_stream(source, true, Augment::kResizedCrop);
  constexpr int64_t kRanks = 3;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const auto open = [&](int64_t epoch, int64_t first) {
      StreamOptions options = whole;
      options.packed = true;
      options.part = {rank, kRanks};
      options.epoch = epoch;
      options.first_batch = first;
      return std::make_unique<BatchStream>(*source.train, options);
    };
    const auto samples = fused::streamed_source(fused::reference_ops(), {whole.batch_size, 3, torch::kFloat32, true},
                                                source.train->size(), whole.view, torch::kCPU, open);
    samples->start_epoch(whole.epoch, 0);
    BatchStream stream(*source.train, whole);
    int64_t step = 0;
    for (Batch batch; stream.next(batch); ++step) {
      const Portion mine = portion_of(batch.labels.size(0), rank, kRanks);
      samples->prepare(mine);
      for (const Portion& some : {mine, Portion{mine.first + 1, mine.count - 1}}) {
        const fused::Sample sample = samples->sample(some);
        EXPECT_TRUE(torch::equal(sample.labels, batch.labels.narrow(0, some.first, some.count)));
        EXPECT_TRUE(torch::allclose(sample.images, batch.images.narrow(0, some.first, some.count), 0, 1e-5));
      }
    }
    EXPECT_EQ(step, BatchStream::batch_count(source.train->size(), whole.batch_size));
  }
}

TEST(PackedBatches, AnImageThatDoesNotDecodeReachesTheCaller) {
  const TempDir dir;
  write_stripes(dir.path(), 12, 4);
  testing::write_text(dir / "train" / "down" / "1.jpg", "\xFF\xD8\xFF no JPEG");
  const DataSource source = open_folder(dir.path());
  StreamOptions options = stripe_stream(source, true, Augment::kResizedCrop);
  options.packed = true;
  fused::Feed feed(std::make_unique<BatchStream>(*source.train, options), torch::kCPU);
  testing::expect_error(ErrorKind::kData, "1.jpg", [&] {
    for (fused::PackedBatch batch; feed.next(batch);) continue;
  });
}

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
  write_stripes(dir / "data", 36, 13);
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
  write_stripes(dir / "data", 36, 13);
  testing::train_in(dir / "cpu", stripe_recipe(dir / "data", "plain"));
  const auto expected = read_metrics(RunFiles(dir / "cpu").metrics());
  for (const char* engine : {"plain", "fused"}) {
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
  write_stripes(dir / "data", 36, 13);
  const Recipe recipe = stripe_recipe(dir / "data", "fused");
  testing::train_in(dir / "whole", recipe);
  for (const int64_t reports : {1, 2, 1}) testing::train_in(dir / "parts", recipe, reports);
  testing::train_in(dir / "parts", recipe);
  EXPECT_EQ(CheckpointFolder(RunFiles(dir / "parts").checkpoints()).find("last").state.step, 10);
  EXPECT_TRUE(testing::final_weights(dir / "whole") == testing::final_weights(dir / "parts"));
}

}  // namespace
}  // namespace onetap
