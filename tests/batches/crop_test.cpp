// Crops on a GPU against those on the host, over sizes, types and kinds of crops; without a GPU nothing is tested here.
#include "onetap/batches/crop.h"

#include "onetap/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace onetap {
namespace {

double worst(const torch::Tensor& got, const torch::Tensor& expected) {
  const auto a = got.cpu().to(torch::kFloat64), b = expected.to(torch::kFloat64);
  return (a - b).abs().max().item<double>() / std::max(1e-3, b.abs().max().item<double>());
}

TEST(CudaKernels, CropsEqualTheHosts) {
  if (!torch::cuda::is_available() || !crops_on_gpu()) GTEST_SKIP() << "skipped: no GPU";
  struct Shown {
    int64_t height, width;
    Crop crop;
  };
  const std::vector<Shown> all = {
      {40, 50, {{3, 7, 30, 41}, false, true, {-2, 9, 7}}},  // shrinks a little
      {40, 50, {{3.5, 7.25, 9, 8}, true, true, {}}},        // grows
      {300, 400, {{0, 0, 300, 400}, true, true, {}}},       // shrinks a lot
      {301, 7, {{100, 0.5, 200, 6.5}, false, true, {}}},
      {1, 1, {{0, 0, 1, 1}, true, true, {}}},
      {33, 20, {{-4, 3, 24, 24}, true, false, {}, {0.7f, 1.3f, 0.2f}}},  // over the edges, pixel for pixel
      {24, 24, {{0, 0, 24, 24}, false, false, {20, 3, 8}}}};
  for (const int64_t size : {1, 24, 37, 300}) {
    View view;
    view.size = size;
    view.normalisation = {{0.4f, 0.5f, 0.6f}, {0.2f, 0.25f, 0.3f}};
    Packer packer;
    Random random(1, Purpose::kTest);
    for (const Shown& shown : all) {
      Image image{3, shown.height, shown.width, {}};
      image.pixels.resize(static_cast<size_t>(3 * shown.height * shown.width));
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(random.below(256));
      packer.add(image, shown.crop, 0);
    }
    const PackedBatch batch = packer.pack(false);
    const auto count = static_cast<int64_t>(all.size());
    for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
      const double near = type == torch::kFloat32 ? 2e-5 : 1.2e-2;
      const auto expected = torch::full({count, 8, size, size}, 9, type).contiguous(torch::MemoryFormat::ChannelsLast);
      const auto got = expected.cuda().contiguous(torch::MemoryFormat::ChannelsLast);
      crop_packed(batch, view, expected);
      crop_packed(batch.to(torch::kCUDA), view, got);
      for (int64_t n = 0; n < count; ++n) EXPECT_LT(worst(got[n], expected[n]), near) << size << ", image " << n;
    }
  }
}

}  // namespace
}  // namespace onetap
