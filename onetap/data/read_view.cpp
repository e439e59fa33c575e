#include "onetap/data/read_view.h"

#include "onetap/data/image_codec.h"

namespace onetap {
namespace {

// `read` gets what to ask when the size is known.
Crop choose_while_reading(const View& view, const ChooseCrop& choose, const Image& image,
                          const std::function<void(const EighthsNeeded&)>& read) {
  Crop crop;
  read([&](int64_t height, int64_t width) {
    crop = choose(height, width);
    return eighths_needed(crop, view);
  });
  return reduced(crop, image.eighths);
}

}  // namespace

Crop read_for_view(const Dataset& data, int64_t index, const View& view, const ChooseCrop& choose, Image& image) {
  return choose_while_reading(view, choose, image,
                              [&](const EighthsNeeded& needed) { data.read_reduced(index, needed, image); });
}

void read_test_view(const Dataset& data, int64_t index, const View& view, Image& image, float* out) {
  const auto choose = [&](int64_t height, int64_t width) { return test_crop(height, width, view); };
  const Crop crop = read_for_view(data, index, view, choose, image);
  crop_view(image, view, crop, out);
}

void decode_test_view(std::string_view bytes, std::string_view label, const View& view, Image& image, float* out) {
  const auto choose = [&](int64_t height, int64_t width) { return test_crop(height, width, view); };
  const Crop crop = choose_while_reading(
      view, choose, image, [&](const EighthsNeeded& needed) { decode_image(bytes, label, image, needed); });
  crop_view(image, view, crop, out);
}

}  // namespace onetap
