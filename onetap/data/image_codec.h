// JPEG, PNG, WebP and BMP files to byte images, and PNG back. The kind of file is told by its first bytes, not by its
// name.
#pragma once

#include "onetap/data/dataset.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace onetap {

// By its name alone: .jpg, .jpeg, .png, .bmp and, where this build reads it, .webp, in any case.
bool is_image_name(const std::filesystem::path& path);
// ".jpg" of "B.JPG".
std::string lower_extension(const std::filesystem::path& path);

// RGB planes, whatever the file holds: grey is repeated, alpha dropped, 16 bits cut to 8, CMYK converted.
// kData naming `label` if the bytes are none of these, are damaged or truncated, or hold over 100 million
// pixels.
// A JPEG is turned upright, as its Exif orientation says. It comes in the eighths of its height and width that `needed`
// says (none given: all; more where an odd side is reversed), cut down in its own frequencies: the rest is never
// computed. Other files come whole; `needed` is asked all the same.
void decode_image(std::string_view bytes, std::string_view label, Image& image, const EighthsNeeded& needed = {});

// A PNG file of a grey (one plane) or RGB (three planes) image, nothing lost. kUsage for any other image, and in a
// build without libpng.
std::string encode_png(const Image& image);

}  // namespace onetap
