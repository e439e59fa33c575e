// Images read for one view of them: what to show is decided when their size is known, and no more is decoded than that
// needs.
#pragma once

#include "onetap/data/transform.h"

#include <functional>
#include <string_view>

namespace onetap {

// Told the height and width of a whole image, says what to show of it.
using ChooseCrop = std::function<Crop(int64_t height, int64_t width)>;

// Fills `image` and gives the chosen crop in its pixels.
Crop read_for_view(const Dataset& data, int64_t index, const View& view, const ChooseCrop& choose, Image& image);

// The test view of an image of a set, or of a file's bytes; `image` is scratch.
void read_test_view(const Dataset& data, int64_t index, const View& view, Image& image, float* out);
void decode_test_view(std::string_view bytes, std::string_view label, const View& view, Image& image, float* out);

}  // namespace onetap
