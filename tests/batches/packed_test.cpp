// Packed batches on their way to a device, and what is cropped from them there.
#include "onetap/batches/packed.h"

#include "onetap/batches/crop.h"
#include "onetap/batches/feed.h"
#include "onetap/data/folder.h"
#include "tests/support/stripes.h"

namespace onetap {
namespace {

using testing::stripe_stream;
using testing::TempDir;
using testing::write_stripes;

TEST(PackedBatches, BecomeTheViewsThatWorkersMake) {
  const TempDir dir;
  write_stripes(dir.path(), 24, 9);
  const DataSource source = open_folder(dir.path());
  std::vector<torch::Device> devices = {torch::kCPU};
  if (torch::cuda::is_available() && crops_on_gpu()) devices.emplace_back(torch::kCUDA);
  for (const torch::Device device : devices) {
    for (const Augment kind : {Augment::kResizedCrop, Augment::kPadCrop, Augment::kNone}) {
      StreamOptions options = stripe_stream(source, true, kind);
      BatchStream whole(*source.train, options);
      options.packed = true;
      options.pinned = device.is_cuda();
      options.workers = 2;
      Feed feed(std::make_unique<BatchStream>(*source.train, options), device);
      Batch batch;
      PackedBatch packed;
      int64_t images = 0;
      while (whole.next(batch)) {
        ASSERT_TRUE(feed.next(packed));
        const int64_t count = batch.labels.size(0);
        const auto on_device = torch::TensorOptions(torch::kFloat32).device(device);
        const auto got = torch::full({count, 8, 24, 24}, 9.0, on_device).contiguous(torch::MemoryFormat::ChannelsLast);
        crop_packed(packed, options.view, got);
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

TEST(PackedBatches, AnImageThatDoesNotDecodeReachesTheCaller) {
  const TempDir dir;
  write_stripes(dir.path(), 12, 4);
  testing::write_text(dir / "train" / "down" / "1.jpg", "\xFF\xD8\xFF no JPEG");
  FolderOptions strict;
  strict.strict = true;
  const DataSource source = open_folder(dir.path(), strict);
  StreamOptions options = stripe_stream(source, true, Augment::kResizedCrop);
  options.packed = true;
  Feed feed(std::make_unique<BatchStream>(*source.train, options), torch::kCPU);
  testing::expect_error(ErrorKind::kData, "1.jpg", [&] {
    for (PackedBatch batch; feed.next(batch);) continue;
  });
}

}  // namespace
}  // namespace onetap
