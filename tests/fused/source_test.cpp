// Batches of a stream as the samples of fused steps.
#include "onetap/fused/source.h"

#include "onetap/data/folder.h"
#include "tests/support/stripes.h"

namespace onetap::fused {
namespace {

// Places in a sample are those of the step, whichever part of it a rank was given.
TEST(StreamedSource, RanksSampleTheirPartOfAStep) {
  const testing::TempDir dir;
  testing::write_stripes(dir.path(), 20, 2);
  const DataSource source = open_folder(dir.path());
  const StreamOptions whole = testing::stripe_stream(source, true, Augment::kResizedCrop);
  constexpr int64_t kRanks = 3;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    StreamOptions part = whole;
    part.part = {rank, kRanks};
    const auto samples =
        streamed_source({whole.batch_size, 3, torch::kFloat32, true}, *source.train, part, torch::kCPU);
    samples->start_epoch(whole.epoch, 0);
    BatchStream stream(*source.train, whole);
    int64_t step = 0;
    for (Batch batch; stream.next(batch); ++step) {
      const Portion mine = portion_of(batch.labels.size(0), rank, kRanks);
      ASSERT_TRUE(samples->prepare(mine));
      for (const Portion& some : {mine, Portion{mine.first + 1, mine.count - 1}}) {
        const Sample sample = samples->sample(some);
        EXPECT_TRUE(torch::equal(sample.labels, batch.labels.narrow(0, some.first, some.count)));
        EXPECT_TRUE(torch::allclose(sample.images, batch.images.narrow(0, some.first, some.count), 0, 1e-5));
      }
    }
    EXPECT_EQ(step, BatchStream::batch_count(source.train->size(), whole.batch_size));
  }
}

}  // namespace
}  // namespace onetap::fused
