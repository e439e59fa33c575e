// An image that decodes has three planes of its size, and every view of it is finite; reduced, it decodes too. The
// orientation of any bytes is one of the eight.
#include "onetap/data/exif.h"
#include "onetap/data/image_codec.h"
#include "onetap/data/read_view.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int orientation = jpeg_orientation(fuzz::text_of(data, size));
  fuzz::require(orientation >= 1 && orientation <= 8);
  Image image;
  if (!fuzz::accepts([&] { decode_image(fuzz::text_of(data, size), "fuzz", image); })) return 0;
  fuzz::require(image.pixels.size() == static_cast<size_t>(3 * image.height * image.width));
  if (image.height * image.width > 1'000'000) return 0;
  View view;
  view.size = 16;
  std::vector<float> out(static_cast<size_t>(view.floats()));
  test_view(image, view, out.data());
  for (const float value : out) fuzz::require(std::isfinite(value));
  // The same file in as few eighths as the view needs, and in the fewest there are. Some damage shows in whole pixels
  // alone, and some in reduced ones alone.
  const auto text = fuzz::text_of(data, size);
  fuzz::accepts([&] { decode_test_view(text, "fuzz", view, image, out.data()); });
  for (const float value : out) fuzz::require(std::isfinite(value));
  for (const int eighths : {1, 3, 4}) {
    const auto needed = [&](int64_t, int64_t) { return eighths; };
    if (!fuzz::accepts([&] { decode_image(text, "fuzz", image, needed); })) continue;
    fuzz::require(image.pixels.size() == static_cast<size_t>(3 * image.height * image.width));
  }
  return 0;
}
