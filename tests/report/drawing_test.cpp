// What the pictures are made with: colours, the font, and the way to a PNG file.
#include "onetap/data/image_codec.h"
#include "onetap/report/colour.h"
#include "onetap/report/font.h"
#include "tests/support/support.h"

#include <algorithm>
#include <set>

namespace onetap {
namespace {

using testing::expect_error;

TEST(Colour, ScaleIsOrderedByLightnessAndTextCanBeRead) {
  for (const bool dark : {false, true}) {
    const Rgb behind = dark ? Theme::dark().background : Theme::light().background;
    double last = 0;
    for (int i = 0; i <= 100; ++i) {
      const Rgb colour = heat_colour(i / 100.0, dark);
      const double from_background = contrast(colour, behind);
      EXPECT_GE(from_background, last) << i;
      last = from_background;
      EXPECT_GE(contrast(readable_on(colour), colour), 4.5) << i << (dark ? " dark" : " light");
    }
    EXPECT_GE(last, 7);
  }
}

TEST(Font, GlyphsAreDrawnAndDifferent) {
  std::set<std::string_view> seen;
  for (char32_t c = ' '; c <= '~'; ++c) {
    const Glyph glyph = glyph_of(c);
    EXPECT_TRUE(seen.insert(glyph.rows).second) << static_cast<char>(c);
    for (size_t i = 0; i < glyph.rows.size(); ++i) {
      EXPECT_EQ(glyph.rows[i] == '/', i % 6 == 5) << static_cast<char>(c);
    }
    EXPECT_TRUE(glyph.rows.empty() || (glyph.rows.size() + 1) % 6 == 0) << static_cast<char>(c);
  }
  EXPECT_FALSE(seen.count(glyph_of(0x2026).rows));
  EXPECT_EQ(glyph_of(0x4E00).rows, glyph_of(0xE9).rows) << "a box for what the font does not have";
}

TEST(EncodePng, ComesBackUnchanged) {
#if !defined(ONETAP_HAVE_PNG)
  expect_error(ErrorKind::kUsage, "made without libpng", [] { encode_png({3, 1, 1, {0, 0, 0}}); });
#else
  Image image{3, 5, 7, {}};
  for (int i = 0; i < 3 * 5 * 7; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 37));
  Image back;
  decode_image(encode_png(image), "png", back);
  EXPECT_EQ(back.height, 5);
  EXPECT_EQ(back.width, 7);
  EXPECT_EQ(back.pixels, image.pixels);

  Image grey{1, 2, 3, {0, 50, 100, 150, 200, 250}};
  decode_image(encode_png(grey), "png", back);
  ASSERT_EQ(back.pixels.size(), 18u);
  EXPECT_TRUE(std::equal(grey.pixels.begin(), grey.pixels.end(), back.pixels.begin() + 6));

  expect_error(ErrorKind::kUsage, "grey or RGB", [] { encode_png({2, 1, 1, {0, 0}}); });
  expect_error(ErrorKind::kUsage, "grey or RGB", [] { encode_png({3, 2, 2, {0}}); });
  expect_error(ErrorKind::kUsage, "grey or RGB", [] { encode_png({}); });
#endif
}

}  // namespace
}  // namespace onetap
