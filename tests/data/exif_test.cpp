// Photographs that are stored turned, with a note of how to turn them back.
#include "onetap/data/exif.h"

#include "onetap/data/folder.h"
#include "onetap/data/image_codec.h"
#include "onetap/data/read_view.h"
#include "tests/support/images.h"
#include "tests/support/support.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

using testing::jpeg_bytes;
using testing::TempDir;
using testing::write_text;

// One entry of an image file directory.
struct ExifEntry {
  uint32_t tag, type, count, value;
};

// A TIFF structure of one directory.
std::string tiff(const std::vector<ExifEntry>& entries, bool big_endian) {
  std::string bytes;
  const auto add = [&](uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * (big_endian ? size - 1 - i : i)));
  };
  bytes += big_endian ? "MM" : "II";
  add(42, 2);
  add(8, 4);
  add(static_cast<uint32_t>(entries.size()), 2);
  for (const ExifEntry& entry : entries) {
    add(entry.tag, 2);
    add(entry.type, 2);
    add(entry.count, 4);
    add(entry.value, 2);
    add(0, 2);
  }
  return bytes;
}

std::string segment(char marker, const std::string& content) {
  const size_t length = content.size() + 2;
  return std::string{'\xFF', marker, static_cast<char>(length >> 8), static_cast<char>(length & 255)} + content;
}

std::string exif_segment(const std::string& tiff_bytes) {
  return segment('\xE1', std::string("Exif\0\0", 6) + tiff_bytes);
}

// A camera writes the maker of the lens and others beside the orientation.
std::string exif_of(uint32_t orientation, bool big_endian = false) {
  return exif_segment(tiff({{271, 3, 1, 7}, {274, 3, 1, orientation}, {296, 3, 1, 2}}, big_endian));
}

std::string with_segments(const std::string& jpeg, const std::string& segments) {
  return jpeg.substr(0, 2) + segments + jpeg.substr(2);
}

constexpr int kCell = 16;
const char* const kStored = "ABC/DEF";

// What the cells of `letters` look like, each in a grey of its own.
std::vector<uint8_t> cells(const std::string& letters, int* width, int* height) {
  const int columns = static_cast<int>(letters.find('/')),
            rows = (static_cast<int>(letters.size()) + 1) / (columns + 1);
  *width = columns * kCell;
  *height = rows * kCell;
  std::vector<uint8_t> rgb;
  for (int y = 0; y < *height; ++y) {
    for (int x = 0; x < *width; ++x) {
      const char letter = letters[static_cast<size_t>((y / kCell) * (columns + 1) + x / kCell)];
      for (int c = 0; c < 3; ++c) rgb.push_back(static_cast<uint8_t>(30 + 40 * (letter - 'A') - 5 * c));
    }
  }
  return rgb;
}

std::string letters_of(const Image& image) {
  const int64_t cell = kCell * image.eighths / 8;
  std::string letters;
  for (int64_t y = cell / 2; y < image.height; y += cell) {
    if (!letters.empty()) letters += '/';
    for (int64_t x = cell / 2; x < image.width; x += cell) {
      const int grey = image.pixels[static_cast<size_t>(y * image.width + x)];
      letters += static_cast<char>('A' + (grey - 30 + 20) / 40);
    }
  }
  return letters;
}

// By hand from Exif 2.32, 4.6.4: orientation 6, for example, has row 0 (ABC) at the right and column 0 at the top.
const std::vector<std::string> kShown = {"ABC/DEF",  "CBA/FED",  "FED/CBA",  "DEF/ABC",
                                         "AD/BE/CF", "DA/EB/FC", "FC/EB/DA", "CF/BE/AD"};

TEST(Exif, EveryOrientationIsTurnedUpright) {
  int width = 0, height = 0;
  const auto pixels = cells(kStored, &width, &height);
  const std::string jpeg = jpeg_bytes(pixels, width, height);
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      SCOPED_TRACE(orientation);
      const std::string file = with_segments(jpeg, exif_of(orientation, big_endian));
      EXPECT_EQ(jpeg_orientation(file), static_cast<int>(orientation));
      for (const int eighths : {8, 4, 3, 2, 1}) {
        Image image;
        int64_t asked_height = 0, asked_width = 0;
        decode_image(file, "x.jpg", image, [&](int64_t h, int64_t w) {
          asked_height = h;
          asked_width = w;
          return eighths;
        });
        const std::string& shown = kShown[orientation - 1];
        EXPECT_EQ(letters_of(image), shown) << eighths;
        // Who asks for a crop asks for one of the upright image.
        EXPECT_EQ(asked_width, static_cast<int64_t>(shown.find('/')) * kCell);
        EXPECT_EQ(asked_height * asked_width, int64_t{width} * height);
        EXPECT_EQ(image.eighths, eighths);
      }
    }
  }
}

// A smooth image of odd size, which no number of eighths but 8 divides.
std::vector<uint8_t> waves(int width, int height) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        rgb.push_back(static_cast<uint8_t>(120 + 60 * std::sin(0.11 * x + c) + 50 * std::cos(0.09 * y)));
      }
    }
  }
  return rgb;
}

TEST(Exif, ReducedImagesShowTheSamePartAsWholeOnes) {
  const int width = 437, height = 391;
  const std::string jpeg = jpeg_bytes(waves(width, height), width, height);
  View view;
  view.size = 24;
  view.normalisation = {{0, 0, 0}, {1.0f / 255, 1.0f / 255, 1.0f / 255}};  // values come out as they are
  std::vector<float> expected(static_cast<size_t>(view.floats())), got(expected.size());
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::string file = with_segments(jpeg, exif_of(orientation));
    Image whole, few;
    decode_image(file, "x.jpg", whole);
    Crop crop;
    crop.box = {9, 20, 330, 301};
    crop_view(whole, view, crop, expected.data());
    for (const int eighths : {1, 2, 3, 4}) {
      decode_image(file, "x.jpg", few, [&](int64_t, int64_t) { return eighths; });
      EXPECT_GE(few.eighths, eighths);
      crop_view(few, view, reduced(crop, few.eighths), got.data());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 6) << eighths;
    }
  }
}

// The views of training and of tests, through an image folder.
TEST(Exif, FoldersGiveViewsOfUprightImages) {
  const TempDir dir;
  int width = 0, height = 0;
  const auto stored = cells(kStored, &width, &height);
  const std::string turned = with_segments(jpeg_bytes(stored, width, height), exif_of(6));
  const auto shown = cells(kShown[5], &width, &height);
  const std::string upright = jpeg_bytes(shown, width, height);
  for (const char* split : {"train", "val"}) {
    write_text(dir / split / "a" / "turned.jpg", turned);
    write_text(dir / split / "b" / "upright.jpg", upright);
  }
  const DataSource source = open_folder(dir.path());
  View view;
  view.size = 24;
  view.normalisation = {{0, 0, 0}, {1.0f / 255, 1.0f / 255, 1.0f / 255}};
  const auto views = [&](int64_t index) {
    std::vector<std::vector<float>> all(2, std::vector<float>(static_cast<size_t>(view.floats())));
    Image image;
    read_test_view(*source.test, index, view, image, all[0].data());
    const auto train = [&](int64_t h, int64_t w) {
      return train_crop(h, w, view, {Augment::kResizedCrop}, Random(3, Purpose::kTest));
    };
    crop_view(image, view, read_for_view(*source.train, index, view, train, image), all[1].data());
    return all;
  };
  const auto got = views(0), expected = views(1);
  for (size_t i = 0; i < got.size(); ++i) {
    for (size_t j = 0; j < got[i].size(); ++j) ASSERT_NEAR(got[i][j], expected[i][j], 3) << i;
  }
}

TEST(Exif, OtherSegmentsAndFillBytesMayStandBefore) {
  int width = 0, height = 0;
  const auto pixels = cells(kStored, &width, &height);
  const std::string jpeg = jpeg_bytes(pixels, width, height);
  const std::string xmp = segment('\xE1', std::string("http://ns.adobe.com/xap/1.0/\0<x/>", 33));
  EXPECT_EQ(jpeg_orientation(with_segments(jpeg, xmp + "\xFF\xFF" + exif_of(8))), 8);
  // The first one counts, and what follows the pixels' first marker is no Exif.
  EXPECT_EQ(jpeg_orientation(with_segments(jpeg, exif_of(3) + exif_of(8))), 3);
  EXPECT_EQ(jpeg_orientation(jpeg + exif_of(8)), 1);
  EXPECT_EQ(jpeg_orientation(jpeg), 1);
}

TEST(Exif, HostileOrientationsAreUpright) {
  int width = 0, height = 0;
  const auto pixels = cells(kStored, &width, &height);
  const std::string jpeg = jpeg_bytes(pixels, width, height);
  const auto ignored = [&](const std::string& segments, const char* what) {
    const std::string file = with_segments(jpeg, segments);
    EXPECT_EQ(jpeg_orientation(file), 1) << what;
    Image image;
    decode_image(file, "x.jpg", image);
    EXPECT_EQ(letters_of(image), kStored) << what;
  };
  ignored(exif_of(0), "orientation 0");
  ignored(exif_of(9), "orientation 9");
  ignored(exif_of(65535), "orientation 65535");
  ignored(exif_segment(tiff({{274, 4, 1, 6}}, false)), "another type");
  ignored(exif_segment(tiff({{274, 3, 0xFFFFFFFF, 6}}, true)), "many values");
  ignored(exif_segment(""), "no TIFF structure");
  const std::string good = tiff({{274, 3, 1, 6}}, false);
  ignored(exif_segment("XX" + good.substr(2)), "another byte order");
  ignored(exif_segment(good.substr(0, 2) + "+" + good.substr(3)), "another number than 42");
  for (size_t size = 0; size < good.size() - 2; ++size) ignored(exif_segment(good.substr(0, size)), "cut off");
  for (const char* far : {"\xFF\xFF\xFF\xFF", "\xFE\xFF\xFF\x7F", "\x16\0\0\0"}) {
    std::string away = good;
    away.replace(4, 4, std::string(far, 4));
    ignored(exif_segment(away), "a directory outside");
  }
  std::string many = good;
  many.replace(8, 2, "\xFF\xFF");
  EXPECT_EQ(jpeg_orientation(with_segments(jpeg, exif_segment(many))), 6) << "65535 entries, of which the first is it";
  many.replace(10, 2, "..");
  ignored(exif_segment(many), "65535 entries in a few bytes");
}

// Bytes that no JPEG decoder sees first: the scan itself ends, and in bounds.
TEST(Exif, BrokenSegmentsEndTheScan) {
  for (const std::string& rest :
       {std::string(), std::string("\xFF"), std::string("\xFF\xE1"), std::string("\xFF\xE1\0\0", 4),
        std::string("\xFF\xE1\0\1", 4), std::string("\xFF\xE1\xFF\xFF", 4), std::string(5000, '\xFF'),
        std::string("no marker"), std::string("\xFF\xD9") + exif_of(6), std::string("\xFF\xDA") + exif_of(6)}) {
    EXPECT_EQ(jpeg_orientation("\xFF\xD8" + rest), 1);
  }
  EXPECT_EQ(jpeg_orientation(""), 1);
  const std::string cut = "\xFF\xD8" + exif_of(6);
  EXPECT_EQ(jpeg_orientation(cut), 6);
  EXPECT_EQ(jpeg_orientation(cut.substr(0, cut.size() - 1)), 1);
}

}  // namespace
}  // namespace onetap
