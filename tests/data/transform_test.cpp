#include "onetap/data/transform.h"

#include "tests/support/support.h"

#include <cmath>
#include <set>

namespace onetap {
namespace {

// Pixel (c, y, x) holds a value of its own.
Image numbered(int64_t height, int64_t width) {
  Image image{3, height, width, {}};
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) image.pixels.push_back(static_cast<uint8_t>(c * 80 + y * 8 + x));
    }
  }
  return image;
}

View plain_view(int64_t size) {
  View view;
  view.size = size;
  view.normalisation = {{0, 0, 0}, {1.0f / 255, 1.0f / 255, 1.0f / 255}};  // values come out as they are
  return view;
}

std::vector<float> crop(const Image& image, const View& view, int64_t top, int64_t left, bool flip) {
  std::vector<float> out(static_cast<size_t>(view.floats()));
  padded_crop(image, view, top, left, flip, out.data());
  return out;
}

TEST(Transform, NormalisesAsTheFormulaSays) {
  const Image image = numbered(8, 8);
  View view;
  view.size = 8;
  view.normalisation = {{0.4914f, 0.4822f, 0.4465f}, {0.2023f, 0.1994f, 0.2010f}};
  const auto out = crop(image, view, 0, 0, false);
  for (size_t c = 0; c < 3; ++c) {
    const float pixel = image.pixels[c * 64 + 13];
    EXPECT_NEAR(out[c * 64 + 13], (pixel / 255 - view.normalisation.mean[c]) / view.normalisation.sd[c], 1e-5);
  }
}

TEST(Transform, PaddedCropAgainstPlainIndexing) {
  const Image image = numbered(8, 8);
  const View view = plain_view(8);
  for (int64_t top = -4; top <= 4; ++top) {
    for (int64_t left = -4; left <= 4; ++left) {
      for (const bool flip : {false, true}) {
        const auto out = crop(image, view, top, left, flip);
        for (int64_t c = 0; c < 3; ++c) {
          for (int64_t y = 0; y < 8; ++y) {
            for (int64_t x = 0; x < 8; ++x) {
              const int64_t row = top + y, column = left + (flip ? 7 - x : x);
              const bool inside = row >= 0 && row < 8 && column >= 0 && column < 8;
              const float expected = inside ? static_cast<float>(c * 80 + row * 8 + column) : 0.0f;
              ASSERT_NEAR(out[static_cast<size_t>((c * 8 + y) * 8 + x)], expected, 1e-4);
            }
          }
        }
      }
    }
  }
}

TEST(Transform, AugmentationReachesEveryPlacementAndBothSides) {
  const Image image = numbered(8, 8);
  const View view = plain_view(8);
  AugmentOptions options;
  options.pad = 1;
  std::set<std::vector<float>> seen;
  std::vector<float> out(static_cast<size_t>(view.floats()));
  for (uint32_t i = 0; i < 400; ++i) {
    train_view(image, view, options, Random(0, Purpose::kTest, i), out.data());
    seen.insert(out);
  }
  EXPECT_EQ(seen.size(), 3u * 3 * 2);
  options.flip = false;
  seen.clear();
  for (uint32_t i = 0; i < 400; ++i) {
    train_view(image, view, options, Random(0, Purpose::kTest, i), out.data());
    seen.insert(out);
  }
  EXPECT_EQ(seen.size(), 3u * 3);
}

TEST(Transform, CutoutLeavesOutASquareAnywhere) {
  const Image image = numbered(8, 8);
  const View view = plain_view(8);
  AugmentOptions options;
  options.kind = Augment::kNone;
  std::vector<float> whole(static_cast<size_t>(view.floats())), out = whole;
  train_view(image, view, options, Random(0, Purpose::kTest), whole.data());
  options.cutout = 4;
  std::set<std::pair<int64_t, int64_t>> corners;
  for (uint32_t i = 0; i < 800; ++i) {
    train_view(image, view, options, Random(0, Purpose::kTest, i), out.data());
    Random again(0, Purpose::kTest, i);
    const Cutout square = Cutout::draw(8, 4, again);
    corners.emplace(square.top, square.left);
    for (int64_t at = 0; at < view.floats(); ++at) {
      const bool cut = square.covers(at / 8 % 8, at % 8);
      ASSERT_EQ(out[static_cast<size_t>(at)], cut ? 0 : whole[static_cast<size_t>(at)]);
    }
  }
  EXPECT_EQ(corners.size(), 64u);
  EXPECT_EQ(corners.begin()->first, -2);
  EXPECT_EQ(corners.rbegin()->first, 5);
}

// By hand: grey of (0.3, 0.6, 0.9) is 0.6; saturation 2 gives (0, 0.6, 1.2), contrast 0.5 half of that, brightness
// adds.
TEST(Transform, JitterChangesEveryPixelAlike) {
  float red = 0.3f, green = 0.6f, blue = 0.9f;
  Jitter{0.5f, 2, 0.25f}.apply(red, green, blue);
  EXPECT_NEAR(red, 0.25, 1e-6);
  EXPECT_NEAR(green, 0.55, 1e-6);
  EXPECT_NEAR(blue, 0.85, 1e-6);
  EXPECT_FALSE(Jitter().changes());

  const Image image = numbered(8, 8);
  const View view = plain_view(8);
  AugmentOptions options;
  options.kind = Augment::kNone;
  std::vector<float> plain(static_cast<size_t>(view.floats())), out = plain;
  train_view(image, view, options, Random(0, Purpose::kTest), plain.data());
  options.jitter = 0.4f;
  options.cutout = 3;
  std::set<float> contrasts;
  for (uint32_t i = 0; i < 100; ++i) {
    train_view(image, view, options, Random(0, Purpose::kTest, i), out.data());
    Random again(0, Purpose::kTest, i);
    const Cutout square = Cutout::draw(8, 3, again);
    const Jitter jitter = Jitter::draw(0.4f, again);
    contrasts.insert(jitter.contrast);
    for (const float factor : {jitter.contrast, jitter.saturation, 1 + jitter.brightness}) {
      EXPECT_TRUE(factor >= 0.6f && factor <= 1.4f);
    }
    for (size_t at = 0; at < 64; ++at) {
      float r = plain[at], g = plain[64 + at], b = plain[128 + at];
      jitter.apply(r, g, b);
      const bool cut = square.covers(static_cast<int64_t>(at) / 8, static_cast<int64_t>(at) % 8);
      ASSERT_EQ(out[at], cut ? 0 : r);
      ASSERT_EQ(out[64 + at], cut ? 0 : g);
      ASSERT_EQ(out[128 + at], cut ? 0 : b);
    }
  }
  EXPECT_GT(contrasts.size(), 90u);
}

TEST(Transform, ResizingKeepsConstantsAndRamps) {
  Image flat{3, 17, 31, std::vector<uint8_t>(3 * 17 * 31, 99)};
  const View view = plain_view(12);
  std::vector<float> out(static_cast<size_t>(view.floats()));
  resized_crop(flat, view, {2.5, 3.25, 9.5, 20.75}, true, out.data());
  for (const float value : out) EXPECT_NEAR(value, 99, 1e-3);

  Image ramp{3, 40, 40, {}};
  for (int i = 0; i < 3 * 40 * 40; ++i) ramp.pixels.push_back(static_cast<uint8_t>(i % 40 * 5));
  resized_crop(ramp, view, {8, 8, 24, 24}, false, out.data());
  // Halving a ramp away from the edges: output x covers input 8 + 2x .. 10 + 2x, whose mean is 5 * (8.5 + 2x).
  for (size_t x = 0; x < 12; ++x) EXPECT_NEAR(out[5 * 12 + x], 5 * (8.5 + 2 * static_cast<double>(x)), 0.02);
}

TEST(Transform, TestViewTakesTheMiddle) {
  Image image{3, 100, 200, std::vector<uint8_t>(3 * 100 * 200, 0)};
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 100; ++y) {
      for (int x = 50; x < 150; ++x) image.pixels[static_cast<size_t>((c * 100 + y) * 200 + x)] = 255;
    }
  }
  const View view = plain_view(32);
  std::vector<float> out(static_cast<size_t>(view.floats()));
  test_view(image, view, out.data());
  for (const float value : out) EXPECT_NEAR(value, 255, 0.01);  // the bright middle alone
}

TEST(Transform, ResizedCropStaysInRange) {
  const Image image = numbered(9, 30);
  const View view = plain_view(16);
  AugmentOptions options;
  options.kind = Augment::kResizedCrop;
  std::vector<float> out(static_cast<size_t>(view.floats()));
  std::set<float> firsts;
  for (uint32_t i = 0; i < 200; ++i) {
    train_view(image, view, options, Random(1, Purpose::kTest, i), out.data());
    for (const float value : out) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_GE(value, -0.01f);
      ASSERT_LE(value, 255.01f);
    }
    firsts.insert(out[0]);
  }
  EXPECT_GT(firsts.size(), 50u);
}

TEST(Transform, RefusesAViewLargerThanThePaddedImage) {
  const Image image = numbered(8, 8);
  const View view = plain_view(32);
  std::vector<float> out(static_cast<size_t>(view.floats()));
  testing::expect_error(ErrorKind::kUsage, "smaller than the view",
                        [&] { train_view(image, view, {}, Random(0, Purpose::kTest), out.data()); });
}

}  // namespace
}  // namespace onetap
