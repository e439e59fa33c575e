// An image that decodes has three planes of its size, and every view of it is finite.
#include "onetap/data/image_codec.h"
#include "onetap/data/transform.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Image image;
  if (!fuzz::accepts([&] { decode_image(fuzz::text_of(data, size), "fuzz", image); })) return 0;
  fuzz::require(image.pixels.size() == static_cast<size_t>(3 * image.height * image.width));
  if (image.height * image.width > 1'000'000) return 0;
  View view;
  view.size = 16;
  std::vector<float> out(static_cast<size_t>(view.floats()));
  test_view(image, view, out.data());
  for (const float value : out) fuzz::require(std::isfinite(value));
  return 0;
}
