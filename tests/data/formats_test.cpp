// BMP, WebP and PNGs of 16 bits. The files of the corpus were written by Pillow 12.
#include "onetap/base/file.h"
#include "onetap/data/bmp.h"
#include "onetap/data/image_codec.h"
#include "tests/support/images.h"
#include "tests/support/support.h"

#include <cstdlib>

namespace onetap {
namespace {

using testing::expect_error;
using testing::quarters;

std::string corpus(const char* name) {
  return read_file(std::string(ONETAP_CORPUS) + "/image/" + name);
}

// What the image shows, interleaved.
std::vector<int> shown(const Image& image) {
  std::vector<int> rgb;
  const auto plane = static_cast<size_t>(image.height * image.width);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb.push_back(image.pixels.at(c * plane + i));
  }
  return rgb;
}

void expect_quarters_of_ten_by_six(const Image& image, int tolerance) {
  ASSERT_EQ(image.width, 10);
  ASSERT_EQ(image.height, 6);
  const auto expected = quarters(10, 6);
  const auto got = shown(image);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

TEST(Bmp, ReadsWhatPillowWrote) {
  Image image;
  for (const char* name : {"rgb.bmp", "palette.bmp", "rgba.bmp"}) {
    SCOPED_TRACE(name);
    decode_image(corpus(name), name, image);
    expect_quarters_of_ten_by_six(image, 0);
  }
  decode_image(corpus("one-bit.bmp"), "one-bit.bmp", image);
  for (const uint8_t value : image.pixels) EXPECT_TRUE(value == 0 || value == 255);
}

TEST(Png, SamplesOf16BitsKeepTheirBrightness) {
  Image image;
  decode_image(corpus("grey16.png"), "grey16.png", image);
  ASSERT_EQ(image.pixels.size(), 3u * 16);
  for (size_t i = 0; i < image.pixels.size(); ++i) EXPECT_EQ(image.pixels[i], 17 * (i % 16)) << i;  // 4369 i / 257
}

std::string bytes_of(uint32_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// A file by hand: header of 40 bytes, what follows it, then pixels.
std::string bmp(int32_t width, int32_t height, uint32_t bits, uint32_t compression, const std::string& extra,
                const std::string& pixels) {
  const auto start = static_cast<uint32_t>(54 + extra.size());
  return "BM" + bytes_of(start + static_cast<uint32_t>(pixels.size()), 4) + bytes_of(0, 4) + bytes_of(start, 4) +
         bytes_of(40, 4) + bytes_of(static_cast<uint32_t>(width), 4) + bytes_of(static_cast<uint32_t>(height), 4) +
         bytes_of(1, 2) + bytes_of(bits, 2) + bytes_of(compression, 4) + std::string(20, '\0') + extra + pixels;
}

TEST(Bmp, SixteenBitsAndRowsFromTheTop) {
  // Two rows of one pixel, padded to four bytes: red 31 of 31 above blue 31 of 31; 5-5-5.
  const std::string red = bytes_of(0x7C00, 2) + "..", blue = bytes_of(0x001F, 2) + "..";
  Image image;
  decode_image(bmp(1, 2, 16, 0, "", blue + red), "up", image);
  EXPECT_EQ(shown(image), (std::vector<int>{255, 0, 0, 0, 0, 255}));
  decode_image(bmp(1, -2, 16, 0, "", red + blue), "down", image);
  EXPECT_EQ(shown(image), (std::vector<int>{255, 0, 0, 0, 0, 255}));
  // 5-6-5 by masks: green 32 of 63 is 32 * 255 / 63 = 129.5.
  const std::string masks = bytes_of(0xF800, 4) + bytes_of(0x07E0, 4) + bytes_of(0x001F, 4);
  decode_image(bmp(1, 1, 16, 3, masks, bytes_of(32 << 5, 2) + ".."), "565", image);
  EXPECT_EQ(shown(image), (std::vector<int>{0, 130, 0}));
  // A palette of two, four pixels in the upper bits of a byte.
  const std::string colours = bytes_of(0x0A141E, 4) + bytes_of(0xFFFFFF, 4);
  decode_image(bmp(4, 1, 1, 0, colours, bytes_of(0x50, 4)), "1", image);
  EXPECT_EQ(shown(image), (std::vector<int>{10, 20, 30, 255, 255, 255, 10, 20, 30, 255, 255, 255}));
}

TEST(Bmp, RefusesDamagedFiles) {
  Image image;
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    expect_error(ErrorKind::kData, why, [&] { decode_image(bytes, "x.bmp", image); });
  };
  refused("BM", "got a damaged header (x.bmp)");
  refused(bmp(1, 1, 24, 0, "", "12"), "got 2 bytes of pixels where 4 belong");
  refused(bmp(1, 1, 24, 1, "", "1234"), "got compression 1, which is not read");
  refused(bmp(1, 1, 7, 0, "", "1234"), "got 7 bits a pixel");
  refused(bmp(0, 1, 24, 0, "", "1234"), "got a damaged header");
  refused(bmp(1, INT32_MIN, 24, 0, "", "1234"), "expected");
  refused(bmp(1 << 30, 1 << 30, 24, 0, "", "1234"), "at most 100000000 pixels");
  refused(bmp(1, 1, 32, 3, bytes_of(0, 4) + bytes_of(5, 4) + bytes_of(1, 4), "1234"), "colour masks");
  refused(bmp(1, 1, 8, 0, bytes_of(0, 4), bytes_of(1, 4)), "got a colour outside its table");
}

TEST(WebP, ReadsWhatPillowWrote) {
  if (!is_image_name("a.webp")) GTEST_SKIP() << "built without libwebp";
  Image image;
  decode_image(corpus("lossless.webp"), "lossless.webp", image);
  expect_quarters_of_ten_by_six(image, 0);
  decode_image(corpus("lossy.webp"), "lossy.webp", image);
  EXPECT_EQ(image.width, 10);
  const std::string whole = corpus("lossless.webp");
  expect_error(ErrorKind::kData, "expected a WebP image", [&] { decode_image(whole.substr(0, 40), "x", image); });
}

}  // namespace
}  // namespace onetap
