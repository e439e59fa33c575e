#include "onetap/train/loader.h"

#include "onetap/data/shapes.h"
#include "tests/support/support.h"

#include <set>

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

}  // namespace
}  // namespace onetap
