#include "onetap/batches/batch_stream.h"

#include "onetap/data/shapes.h"
#include "tests/support/blocked_dataset.h"
#include "tests/support/huge_stacks.h"
#include "tests/support/support.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

namespace onetap {
namespace {

StreamOptions options(bool train, int64_t workers, int64_t first_batch = 0) {
  StreamOptions o;
  o.view.size = 32;
  o.batch_size = 16;
  o.workers = workers;
  o.train = train;
  o.seed = 4;
  o.epoch = 3;
  o.first_batch = first_batch;
  return o;
}

std::vector<Batch> collect(const Dataset& data, const StreamOptions& o) {
  BatchStream stream(data, o);
  std::vector<Batch> batches;
  for (Batch batch; stream.next(batch);) batches.push_back(batch);
  return batches;
}

TEST(BatchStream, KeepsTheLastSmallerBatch) {
  const DataSource source = open_shapes({100, 10, 0});
  const auto batches = collect(*source.train, options(true, 2));
  ASSERT_EQ(batches.size(), 7u);
  EXPECT_EQ(batches.back().labels.size(0), 4);
}

TEST(BatchStream, WorkersAndStartDoNotChangeTheBatches) {
  const DataSource source = open_shapes({100, 10, 0});
  const auto one = collect(*source.train, options(true, 1));
  for (const int64_t workers : {2, 5}) {
    const auto many = collect(*source.train, options(true, workers));
    const auto late = collect(*source.train, options(true, workers, 3));
    ASSERT_EQ(late.size(), 4u);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i].images.equal(many[i].images));
      EXPECT_TRUE(one[i].labels.equal(many[i].labels));
      if (i >= 3) {
        EXPECT_TRUE(one[i].images.equal(late[i - 3].images));
      }
    }
  }
}

TEST(BatchStream, EpochsDifferAndCoverEverything) {
  const DataSource source = open_shapes({100, 10, 0});
  StreamOptions o = options(true, 1);
  const auto third = collect(*source.train, o);
  o.epoch = 4;
  const auto fourth = collect(*source.train, o);
  EXPECT_FALSE(third[0].labels.equal(fourth[0].labels) && third[0].images.equal(fourth[0].images));
  std::vector<int64_t> counts(10, 0);
  for (const Batch& batch : third) {
    for (int64_t i = 0; i < batch.labels.size(0); ++i) ++counts[static_cast<size_t>(batch.labels[i].item<int64_t>())];
  }
  EXPECT_EQ(counts, std::vector<int64_t>(10, 10));
}

TEST(BatchStream, TestImagesComeInOrder) {
  const DataSource source = open_shapes({20, 30, 0});
  const auto batches = collect(*source.test, options(false, 3));
  int64_t index = 0;
  for (const Batch& batch : batches) {
    for (int64_t i = 0; i < batch.labels.size(0); ++i) EXPECT_EQ(batch.labels[i].item<int64_t>(), index++ % 10);
  }
}

// A set whose third image cannot be read.
class Damaged : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t label(int64_t) const override { return 0; }
  void read(int64_t index, Image& image) const override {
    if (index == 3) throw Error(ErrorKind::kData, "[data] image 3 does not decode");
    image = {3, 32, 32, std::vector<uint8_t>(3072, 0)};
  }
};

TEST(BatchStream, AWorkersErrorReachesTheCaller) {
  const Damaged data;
  StreamOptions o = options(false, 2);
  o.batch_size = 2;
  BatchStream stream(data, o);
  Batch batch;
  EXPECT_TRUE(stream.next(batch));
  testing::expect_error(ErrorKind::kData, "image 3", [&] { stream.next(batch); });
}

TEST(BatchStream, CanBeLeftInTheMiddle) {
  const DataSource source = open_shapes({500, 10, 0});
  for (int i = 0; i < 20; ++i) {
    BatchStream stream(*source.train, options(true, 4));
    Batch batch;
    ASSERT_TRUE(stream.next(batch));
  }
}

TEST(BatchStream, AStopEndsTheWaitForABlockedRead) {
  const auto data = std::make_shared<const testing::BlockedDataset>(/*blocked=*/20, /*size=*/40);
  std::atomic<bool> stop{false};
  for (const bool packed : {false, true}) {
    stop = false;
    StreamOptions o = options(false, 2);
    o.batch_size = 10;
    o.packed = packed;
    o.stopped = [&] { return stop.load(); };
    std::optional<BatchStream> stream;
    stream.emplace(*data, o);
    Batch batch;
    EXPECT_TRUE(stream->next(batch));
    EXPECT_TRUE(stream->next(batch));
    EXPECT_FALSE(stream->stopped());
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop = true;
    });
    EXPECT_FALSE(stream->next(batch));  // the read itself never ends
    later.join();
    EXPECT_TRUE(stream->stopped());
    EXPECT_FALSE(stream->next(batch));
    // The worker that hangs is left behind, with the data set.
    stream.reset();
  }
  EXPECT_GT(data.use_count(), 1);
  data->release();
  for (int i = 0; i < 1000 && data.use_count() > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(data.use_count(), 1) << "a worker did not end after its read returned";
}

TEST(BatchStream, AStopDoesNotTakeBatchesThatAreReady) {
  const DataSource source = open_shapes({20, 30, 0});
  StreamOptions o = options(false, 1);
  o.stopped = [] { return true; };
  BatchStream stream(*source.test, o);
  while (!stream.ready()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Batch batch;
  EXPECT_TRUE(stream.next(batch));
}

// Only the image under way is waited for, not the rest of its batch.
TEST(BatchStream, ALeftStreamReadsNoFurther) {
  class Slow : public testing::BlockedDataset {
   public:
    Slow() : BlockedDataset(/*blocked=*/-1, /*size=*/1000) {}
    void read(int64_t index, Image& image) const override {
      ++reads;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      BlockedDataset::read(index, image);
    }
    mutable std::atomic<int> reads{0};
  };
  const Slow data;
  StreamOptions o = options(false, 1);
  o.batch_size = 1000;
  std::optional<BatchStream> stream;
  stream.emplace(data, o);
  while (data.reads == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stream.reset();
  EXPECT_LT(data.reads, 100);
}

TEST(BatchStream, AThreadThatCannotStartIsAnError) {
  if (!testing::HugeStacks::kPossible) GTEST_SKIP() << "skipped: sanitizers shadow every stack";
  const DataSource source = open_shapes({500, 10, 0});
  {
    const testing::HugeStacks huge;
    testing::expect_error(ErrorKind::kFailure, "[batches] expected 64 worker threads, got ",
                          [&] { BatchStream(*source.train, options(true, 64)); });
  }
  EXPECT_EQ(collect(*source.train, options(true, 4)).size(), 32u);
}

}  // namespace
}  // namespace onetap
