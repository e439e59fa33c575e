#include "onetap/data/folder.h"

#include "onetap/data/image_codec.h"
#include "tests/support/images.h"
#include "tests/support/support.h"

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::jpeg_bytes;
using testing::png_bytes;
using testing::quarters;
using testing::TempDir;
using testing::write_text;

void expect_quarters(const Image& image, int width, int height, int tolerance) {
  ASSERT_EQ(image.width, width);
  ASSERT_EQ(image.height, height);
  ASSERT_EQ(image.channels, 3);
  const auto rgb = quarters(width, height);
  for (int c = 0; c < 3; ++c) {
    // One pixel well inside each quarter.
    for (const int y : {height / 4, 3 * height / 4}) {
      for (const int x : {width / 4, 3 * width / 4}) {
        EXPECT_NEAR(image.pixels[static_cast<size_t>((c * height + y) * width + x)],
                    rgb[static_cast<size_t>((y * width + x) * 3 + c)], tolerance);
      }
    }
  }
}

TEST(ImageCodec, PngAndJpegBecomePlanes) {
  Image image;
  decode_image(png_bytes(quarters(20, 12), 20, 12), "a.png", image);
  expect_quarters(image, 20, 12, 0);
  decode_image(jpeg_bytes(quarters(48, 32), 48, 32), "a.jpg", image);
  expect_quarters(image, 48, 32, 4);
}

TEST(ImageCodec, GreyAndAlphaBecomeColour) {
  Image image;
  const std::vector<uint8_t> grey(64, 77);
  decode_image(png_bytes(grey, 8, 8, PNG_FORMAT_GRAY), "g.png", image);
  EXPECT_EQ(image.pixels, std::vector<uint8_t>(192, 77));
  decode_image(jpeg_bytes(grey, 8, 8, TJPF_GRAY, TJSAMP_GRAY), "g.jpg", image);
  EXPECT_EQ(image.pixels.size(), 192u);
  EXPECT_NEAR(image.pixels[100], 77, 2);
  decode_image(png_bytes(std::vector<uint8_t>(256, 90), 8, 8, PNG_FORMAT_RGBA), "a.png", image);
  EXPECT_EQ(image.pixels, std::vector<uint8_t>(192, 90));
  // CMYK as photo editors write it, inverted: no ink at all is white.
  decode_image(jpeg_bytes(std::vector<uint8_t>(256, 255), 8, 8, TJPF_CMYK), "c.jpg", image);
  EXPECT_NEAR(image.pixels[0], 255, 2);
}

TEST(ImageCodec, RefusesDamagedFiles) {
  Image image;
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    expect_error(ErrorKind::kData, why, [&] { decode_image(bytes, "x.img", image); });
  };
  refused("", "expected a JPEG or PNG image, got 0 other bytes (x.img)");
  refused("GIF89a", "got 6 other bytes");
  const std::string png = png_bytes(quarters(20, 12), 20, 12), jpeg = jpeg_bytes(quarters(48, 32), 48, 32);
  refused(png.substr(0, 20), "expected a PNG image");
  refused(png.substr(0, png.size() / 2), "expected a PNG image");
  refused(jpeg.substr(0, 20), "expected a JPEG image");
  refused(jpeg.substr(0, jpeg.size() - 40), "damaged pixels");
  // A header that claims 65280 x 65280 pixels is refused before memory is taken.
  std::string huge = jpeg;
  const size_t frame = huge.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, std::string("\xFF\0\xFF\0", 4));
  refused(huge, "at most");
}

void write_images(const fs::path& root) {
  for (const char* split : {"train", "val"}) {
    write_text(root / split / "cat" / "b.JPG", jpeg_bytes(quarters(48, 32), 48, 32));
    write_text(root / split / "cat" / "a.png", png_bytes(quarters(20, 12), 20, 12));
    write_text(root / split / "cat" / "notes.txt", "not an image, passed over");
    write_text(root / split / "ant" / "x.jpeg", jpeg_bytes(quarters(16, 16), 16, 16));
  }
}

TEST(Folder, ClassesAndFilesInOrderOfTheirNames) {
  const TempDir dir;
  write_images(dir.path());
  const DataSource source = open_folder(dir.path());
  EXPECT_EQ(source.classes, (std::vector<std::string>{"ant", "cat"}));
  ASSERT_EQ(source.train->size(), 3);
  EXPECT_EQ(source.train->label(0), 0);
  EXPECT_EQ(source.train->label(2), 1);
  Image image;
  source.train->read(1, image);
  expect_quarters(image, 20, 12, 0);
  source.train->read(2, image);
  expect_quarters(image, 48, 32, 4);
  EXPECT_NE(source.test->describe(0).find("x.jpeg"), std::string::npos);
}

TEST(Folder, RefusesWhatIsNotOne) {
  const TempDir dir;
  expect_error(ErrorKind::kData, "got no folder train", [&] { open_folder(dir.path()); });
  write_images(dir.path());
  fs::create_directories(dir / "train" / "dog");
  expect_error(ErrorKind::kData, "got no folder 'dog' in", [&] { open_folder(dir.path()); });
  fs::create_directories(dir / "val" / "dog");
  expect_error(ErrorKind::kData, "expected .jpg, .jpeg or .png files, got none", [&] { open_folder(dir.path()); });
  write_text(dir / "train" / "dog" / "d.png", "this is no image");
  write_text(dir / "val" / "dog" / "d.png", png_bytes(quarters(8, 8), 8, 8));
  const DataSource source = open_folder(dir.path());
  Image image;
  expect_error(ErrorKind::kData, "d.png", [&] { source.train->read(3, image); });
}

}  // namespace
}  // namespace onetap
