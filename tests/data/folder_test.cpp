#include "onetap/data/folder.h"

#include "onetap/data/image_codec.h"
#include "onetap/data/read_view.h"
#include "tests/support/images.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>
#include <sys/stat.h>

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

EighthsNeeded always(int eighths) {
  return [eighths](int64_t, int64_t) { return eighths; };
}

TEST(ImageCodec, RefusesDamagedFiles) {
  Image image;
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    expect_error(ErrorKind::kData, why, [&] { decode_image(bytes, "x.img", image); });
  };
  refused("", "expected a JPEG, PNG, WebP or BMP image, got 0 other bytes (x.img)");
  refused("GIF89a", "got 6 other bytes");
  const std::string png = png_bytes(quarters(20, 12), 20, 12), jpeg = jpeg_bytes(quarters(48, 32), 48, 32);
  refused(png.substr(0, 20), "expected a PNG image");
  refused(png.substr(0, png.size() / 2), "expected a PNG image");
  refused(jpeg.substr(0, 20), "expected a JPEG image");
  refused(jpeg.substr(0, jpeg.size() - 40), "damaged pixels");
  for (const int eighths : {1, 2, 4}) {
    const auto reduced = [&](const std::string& bytes) { decode_image(bytes, "x.img", image, always(eighths)); };
    expect_error(ErrorKind::kData, "expected a JPEG image", [&] { reduced(jpeg.substr(0, 20)); });
    expect_error(ErrorKind::kData, "damaged pixels", [&] { reduced(jpeg.substr(0, jpeg.size() - 40)); });
  }
  // A header that claims 65280 x 65280 pixels is refused before memory is taken.
  std::string huge = jpeg;
  const size_t frame = huge.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, std::string("\xFF\0\xFF\0", 4));
  refused(huge, "at most");
}

// Something like a photograph: waves, edges and a little noise.
std::vector<uint8_t> scene(int width, int height) {
  std::vector<uint8_t> rgb;
  Random random(5, Purpose::kTest);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = 50 * std::sin(0.02 * (c + 1) * x + 0.03 * y), edge = (x / 70 + y / 50) % 3 == c ? 40 : 0;
        rgb.push_back(static_cast<uint8_t>(110 + wave + edge + random.uniform(-8, 8)));
      }
    }
  }
  return rgb;
}

double psnr(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / std::max(sum, 1e-9));
}

TEST(ImageCodec, ReducedJpegsShowWhatWholeOnesDo) {
  View view;
  view.size = 48;
  view.normalisation = {{0, 0, 0}, {1.0f / 255, 1.0f / 255, 1.0f / 255}};  // values come out as they are
  for (const int subsampling : {TJSAMP_444, TJSAMP_420}) {
    const std::string jpeg = jpeg_bytes(scene(437, 391), 437, 391, TJPF_RGB, subsampling);
    Image whole, few;
    decode_image(jpeg, "whole", whole);
    EXPECT_EQ(whole.eighths, 8);
    std::vector<float> expected(static_cast<size_t>(view.floats())), got(expected.size());
    Crop crop;
    crop.box = {3, 20, 386, 401};
    crop.flip = true;
    crop_view(whole, view, crop, expected.data());
    for (const int eighths : {1, 2, 3, 4, 8}) {
      decode_image(jpeg, "few", few, always(eighths));
      EXPECT_EQ(few.eighths, eighths);
      EXPECT_EQ(few.width, (437 * eighths + 7) / 8);
      EXPECT_EQ(few.height, (391 * eighths + 7) / 8);
      crop_view(few, view, reduced(crop, eighths), got.data());
      EXPECT_GT(psnr(got, expected), 30) << eighths << " eighths, subsampling " << subsampling;
    }
    // The bound sees a crop that is a pixel off.
    Crop beside = reduced(crop, 1);
    decode_image(jpeg, "few", few, always(1));
    beside.box.left += 1;
    crop_view(few, view, beside, got.data());
    EXPECT_LT(psnr(got, expected), 27);
  }
}

TEST(ImageCodec, ReadsNoMoreThanAViewNeeds) {
  const TempDir dir;
  for (const char* split : {"train", "val"}) {
    write_text(dir / split / "a" / "x.jpg", jpeg_bytes(scene(400, 300), 400, 300));
    write_text(dir / split / "b" / "x.png", png_bytes(scene(400, 300), 400, 300));
  }
  const DataSource source = open_folder(dir.path());
  const auto read = [&](int64_t index, int64_t size, const Box& box, Image& image) {
    View view;
    view.size = size;
    return read_for_view(
        *source.train, index, view,
        [&](int64_t height, int64_t width) {
          EXPECT_EQ(height, 300);
          EXPECT_EQ(width, 400);
          return Crop{box, false, true, {}};
        },
        image);
  };
  Image image;
  struct Expected {
    int64_t size;
    Box box;
    int eighths;
  };
  for (const Expected& e : {Expected{224, {0, 0, 300, 400}, 8},
                            {150, {0, 0, 300, 400}, 4},
                            {151, {0, 0, 300, 400}, 8},
                            {75, {0, 0, 300, 400}, 2},
                            {32, {40, 8, 256, 300}, 1},
                            {32, {40, 8, 255, 300}, 2}}) {
    const Crop crop = read(0, e.size, e.box, image);
    EXPECT_EQ(image.eighths, e.eighths) << e.size;
    EXPECT_EQ(image.width, 400 * e.eighths / 8);
    EXPECT_DOUBLE_EQ(crop.box.left, e.box.left * e.eighths / 8);
    EXPECT_TRUE(e.eighths == 8 || std::min(crop.box.height, crop.box.width) >= static_cast<double>(e.size));
  }
  const Crop crop = read(1, 32, {0, 0, 300, 400}, image);  // a PNG comes whole
  EXPECT_EQ(image.eighths, 8);
  EXPECT_EQ(image.width, 400);
  EXPECT_EQ(crop.box.width, 400);
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
  expect_error(ErrorKind::kData, "expected .jpg, .jpeg, .png, .webp or .bmp files, got none",
               [&] { open_folder(dir.path()); });
  write_text(dir / "train" / "dog" / "d.png", "this is no image");
  write_text(dir / "val" / "dog" / "d.png", png_bytes(quarters(8, 8), 8, 8));
  const DataSource source = open_folder(dir.path());
  Image image;
  expect_error(ErrorKind::kData, "d.png", [&] { source.train->read(3, image); });
}

std::vector<std::string> names(const Dataset& data) {
  std::vector<std::string> found;
  for (int64_t i = 0; i < data.size(); ++i) found.push_back(fs::path(data.describe(i)).filename().string());
  return found;
}

TEST(Folder, WithoutSplitsAShareOfEveryClassBecomesTheTestSet) {
  const TempDir dir;
  for (const char* name : {"ant", "bee"}) {
    for (int i = 0; i < 5; ++i) {
      write_text(dir / name / (name + std::to_string(i) + ".png"), png_bytes(quarters(8, 8), 8, 8));
    }
  }
  // By Python: sorted(files, key=lambda f: hashlib.sha256(f"{seed}/{name}/{f}".encode()).hexdigest())[:2]
  FolderOptions options;
  options.test_share = 0.4;
  DataSource source = open_folder(dir.path(), options);
  EXPECT_EQ(source.classes, (std::vector<std::string>{"ant", "bee"}));
  EXPECT_EQ(names(*source.test), (std::vector<std::string>{"ant0.png", "ant2.png", "bee0.png", "bee3.png"}));
  EXPECT_EQ(names(*source.train),
            (std::vector<std::string>{"ant1.png", "ant3.png", "ant4.png", "bee1.png", "bee2.png", "bee4.png"}));
  EXPECT_EQ(source.test->label(2), 1);
  options.seed = 7;
  EXPECT_EQ(names(*open_folder(dir.path(), options).test),
            (std::vector<std::string>{"ant0.png", "ant2.png", "bee3.png", "bee4.png"}));
  options.test_share = 0.01;  // at least one
  EXPECT_EQ(open_folder(dir.path(), options).test->size(), 2);
  write_text(dir / "cow" / "one.png", png_bytes(quarters(8, 8), 8, 8));
  expect_error(ErrorKind::kData, "expected at least 2 images of a class", [&] { open_folder(dir.path()); });
}

TEST(Folder, ImagesOfAClassMayLieInFoldersOfItsFolder) {
  const TempDir dir;
  const std::string image = png_bytes(quarters(8, 8), 8, 8);
  for (const std::string name : {"ant", "bee"}) {
    for (int i = 0; i < 4; ++i) write_text(dir / name / (name + std::to_string(i) + ".png"), image);
  }
  write_text(dir / "ant" / "2025" / "may" / "a.png", image);
  write_text(dir / "ant" / "2026" / "a.png", image);
  write_text(dir / "ant" / "2026" / "clip.gif", "GIF89a");
  write_text(dir / "ant" / ".hidden" / "b.png", image);
  write_text(dir / "loose.png", image);
  write_text(dir / "README", "words");
  // In a circle, and to the images of another class.
  fs::create_directory_symlink(dir.path(), dir / "ant" / "2026" / "up");
  fs::create_directory_symlink(dir / "bee", dir / "ant" / "others");
  // By Python: as below, of names such as "2026/a.png".
  FolderOptions options;
  options.test_share = 0.4;
  options.seed = 2;
  const DataSource source = open_folder(dir.path(), options);
  EXPECT_EQ(source.train->size() + source.test->size(), 4 + 2 + 4);
  EXPECT_EQ(source.other_files, (std::map<std::string, int64_t>{{".gif", 1}}));
  EXPECT_EQ(source.images_outside, 1);
  EXPECT_EQ(source.skipped,
            (std::vector<std::string>{(dir / "ant" / "2026" / "up").string(), (dir / "ant" / "others").string()}));
  std::vector<std::string> test;
  for (int64_t i = 0; i < source.test->size(); ++i) {
    test.push_back(fs::path(source.test->describe(i)).lexically_relative(dir.path()).string());
    EXPECT_TRUE(fs::is_regular_file(source.test->describe(i)));
  }
  EXPECT_EQ(test, (std::vector<std::string>{"ant/2025/may/a.png", "ant/ant3.png", "bee/bee0.png", "bee/bee1.png"}));

  fs::path deep = dir / "bee";
  for (int i = 0; i < 33; ++i) deep /= "d";
  write_text(deep / "a.png", image);
  expect_error(ErrorKind::kData, "expected folders at most 32 deep below a class", [&] { open_folder(dir.path()); });
}

TEST(Folder, SplitsWithOtherNamesAreNoClasses) {
  const TempDir dir;
  for (const std::string split : {"Training", "valid"}) {
    for (const std::string name : {"ant", "bee"}) {
      for (const char* file : {"1.png", "2.png"}) {
        write_text(dir / split / name / file, png_bytes(quarters(8, 8), 8, 8));
      }
    }
  }
  expect_error(ErrorKind::kData, "named train and val (or test), got Training, valid",
               [&] { open_folder(dir.path()); });
}

TEST(Folder, TheNextImageTakesThePlaceOfOneThatDoesNotDecode) {
  const TempDir dir;
  write_images(dir.path());
  write_text(dir / "train" / "cat" / "a0.png", "this is no image");
  write_text(dir / "train" / "cat" / "clip.gif", "GIF89a");
  write_text(dir / "val" / "ant" / "README", "words");
  const DataSource source = open_folder(dir.path());
  EXPECT_EQ(source.other_files, (std::map<std::string, int64_t>{{"", 1}, {".gif", 1}, {".txt", 2}}));
  EXPECT_EQ(other_files_text(source.other_files), "1 without an extension, 1 .gif, 2 .txt");
  EXPECT_EQ(source.images_outside, 0);
  ASSERT_EQ(names(*source.train), (std::vector<std::string>{"x.jpeg", "a.png", "a0.png", "b.JPG"}));
  Image image;
  source.train->read(1, image);
  EXPECT_TRUE(source.train->unreadable().empty());
  source.train->read(2, image);
  expect_quarters(image, 48, 32, 4);  // b.JPG
  EXPECT_EQ(source.train->unreadable(), (std::vector<std::string>{(dir / "train" / "cat" / "a0.png").string()}));
  FolderOptions strict;
  strict.strict = true;
  const DataSource refusing = open_folder(dir.path(), strict);
  expect_error(ErrorKind::kData, "a0.png", [&] { refusing.train->read(2, image); });
}

TEST(Folder, TakesFilesAloneAndNamesTheRest) {
  const TempDir dir;
  write_images(dir.path());
  ASSERT_EQ(::mkfifo((dir / "train" / "ant" / "f.jpg").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir / "val" / "cat" / "d.png");
  fs::create_directories(dir / "train" / "cat" / "folder.png");
  fs::create_symlink(dir / "train" / "cat" / "a.png", dir / "train" / "ant" / "link.png");
  ASSERT_EQ(::mkfifo((dir / "train" / "cat" / "notes").c_str(), 0600), 0);  // no image's name: nobody's concern
  const DataSource source = open_folder(dir.path());
  EXPECT_EQ(source.train->size(), 4);
  EXPECT_EQ(source.test->size(), 3);
  EXPECT_EQ(source.skipped, (std::vector<std::string>{(dir / "train" / "ant" / "f.jpg").string(),
                                                      (dir / "train" / "cat" / "folder.png").string(),
                                                      (dir / "val" / "cat" / "d.png").string()}));
  // Images that were there and are not now must not go unseen.
  fs::create_symlink(dir / "nowhere", dir / "train" / "ant" / "gone.png");
  const DataSource again = open_folder(dir.path());
  EXPECT_EQ(again.train->size(), 5);
  Image image;
  expect_error(ErrorKind::kData, "gone.png", [&] { again.train->read(0, image); });
}

}  // namespace
}  // namespace onetap
