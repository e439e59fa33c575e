#include "onetap/data/image_codec.h"

#include "onetap/base/fail.h"
#include "onetap/data/bmp.h"
#include "onetap/data/exif.h"

#if defined(ONETAP_HAVE_JPEG)
#include <turbojpeg.h>
#endif
#if defined(ONETAP_HAVE_PNG)
#include <png.h>
#endif
#if defined(ONETAP_HAVE_WEBP)
#include <webp/decode.h>
#endif

#include <algorithm>
#include <cctype>
#include <memory>

namespace onetap {
namespace {

constexpr int64_t kMaxPixels = 100'000'000;

void check_size(int64_t width, int64_t height, std::string_view label) {
  if (width < 1 || height < 1 || width > kMaxPixels / height) {
    fail_data("[data] expected an image of at most {} pixels, got {}x{} ({})", kMaxPixels, width, height, label);
  }
}

// Interleaved samples of height x width to planes, the first three of every `stride` bytes, turned upright.
[[maybe_unused]] void to_planes(const std::vector<uint8_t>& interleaved, int64_t stride, int64_t height, int64_t width,
                                Image& image, int orientation = 1) {
  const Upright upright(orientation, height, width);
  image.channels = 3;
  image.height = upright.height;
  image.width = upright.width;
  image.eighths = 8;
  const int64_t pixels = height * width;
  image.pixels.resize(static_cast<size_t>(3 * pixels));
  // By tiles: a row of an image on its side is a column in memory, which would miss the cache at every pixel.
  constexpr int64_t kTile = 64;
  for (int64_t top = 0; top < upright.height; top += kTile) {
    for (int64_t left = 0; left < upright.width; left += kTile) {
      const int64_t bottom = std::min(top + kTile, upright.height), right = std::min(left + kTile, upright.width);
      for (int64_t y = top; y < bottom; ++y) {
        const uint8_t* from = interleaved.data() + stride * (upright.first + y * upright.row_step);
        for (int64_t c = 0; c < 3; ++c) {
          uint8_t* to = image.pixels.data() + c * pixels + y * upright.width;
          for (int64_t x = left; x < right; ++x) to[x] = from[c + x * upright.column_step * stride];
        }
      }
    }
  }
}

int ask(const EighthsNeeded& needed, int64_t height, int64_t width) {
  const int eighths = needed ? needed(height, width) : 8;
  if (eighths < 1 || eighths > 8) fail("[data] expected 1 to 8 eighths of an image, got {}", eighths);
  return eighths;
}

#if defined(ONETAP_HAVE_JPEG)

// The fewest eighths, of 1, 2, 4 and 8, that are at least so many and shrink a side to whole pixels.
int whole_eighths(int eighths, int64_t side) {
  while (side * eighths % 8 != 0) eighths = eighths < 2 ? 2 : eighths < 4 ? 4 : 8;
  return eighths;
}

void decode_jpeg(std::string_view bytes, std::string_view label, Image& image, const EighthsNeeded& needed) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  const auto bad = [&](const char* what) {
    fail_data("[data] expected a JPEG image, got {} ({}: {})", what, tjGetErrorStr2(decoder.get()), label);
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<unsigned long>(bytes.size());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, size, &width, &height, &subsampling, &colours) != 0 || width < 1 ||
      height < 1) {
    bad("a damaged header");
  }
  check_size(width, height, label);
  const int orientation = jpeg_orientation(bytes);
  const Upright upright(orientation, height, width);
  int eighths = ask(needed, upright.height, upright.width);
  // A last column that is part of a pixel may stay the last. As the first it would move the others.
  if (upright.columns_reversed) eighths = whole_eighths(eighths, width);
  if (upright.rows_reversed) eighths = whole_eighths(eighths, height);
  const tjscalingfactor factor{eighths, 8};
  width = TJSCALED(width, factor);
  height = TJSCALED(height, factor);
  const bool cmyk = colours == TJCS_CMYK || colours == TJCS_YCCK;
  const int format = cmyk ? TJPF_CMYK : TJPF_RGB;
  const int stride = cmyk ? 4 : 3;
  std::vector<uint8_t> samples(static_cast<size_t>(int64_t{width} * height * stride));
  const bool complained = tjDecompress2(decoder.get(), data, size, samples.data(), width, 0, height, format,
                                        TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0;
  // Stray bytes between segments are common in photographs and harm nothing; every other complaint
  // (a truncated file above all) means pixels that nobody drew.
  const bool harmless =
      tjGetErrorCode(decoder.get()) == TJERR_WARNING &&
      std::string_view(tjGetErrorStr2(decoder.get())).find("extraneous bytes") != std::string_view::npos;
  if (complained && !harmless) bad("damaged pixels");
  if (cmyk) {
    // Photoshop writes CMYK inverted, and so does everything that copies it: 255 means no ink.
    for (size_t i = 0; i < samples.size(); i += 4) {
      for (size_t c = 0; c < 3; ++c) {
        samples[i + c] = static_cast<uint8_t>(samples[i + c] * samples[i + 3] / 255);
      }
    }
  }
  to_planes(samples, stride, height, width, image, orientation);
  image.eighths = eighths;
}

#endif
#if defined(ONETAP_HAVE_PNG)

void decode_png(std::string_view bytes, std::string_view label, Image& image, const EighthsNeeded& needed) {
  png_image reader{};
  reader.version = PNG_IMAGE_VERSION;
  struct Freer {
    png_image* reader;
    ~Freer() { png_image_free(reader); }
  } freer{&reader};
  if (png_image_begin_read_from_memory(&reader, bytes.data(), bytes.size()) == 0) {
    fail_data("[data] expected a PNG image, got a damaged header ({}: {})", reader.message, label);
  }
  check_size(reader.width, reader.height, label);
  ask(needed, reader.height, reader.width);
  reader.format = PNG_FORMAT_RGBA;  // alpha is read and dropped, as other image tools do
  // libpng takes 16-bit samples without a gAMA chunk for linear light, and brightens them.
  reader.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  std::vector<uint8_t> samples(PNG_IMAGE_SIZE(reader));
  if (png_image_finish_read(&reader, nullptr, samples.data(), 0, nullptr) == 0 || PNG_IMAGE_FAILED(reader)) {
    fail_data("[data] expected a PNG image, got damaged pixels ({}: {})", reader.message, label);
  }
  to_planes(samples, 4, reader.height, reader.width, image);
}

#endif
#if defined(ONETAP_HAVE_WEBP)

void decode_webp(std::string_view bytes, std::string_view label, Image& image, const EighthsNeeded& needed) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    fail_data("[data] expected a WebP image, got a damaged header ({})", label);
  }
  if (features.has_animation != 0) fail_data("[data] expected a WebP image, got an animation ({})", label);
  check_size(features.width, features.height, label);
  ask(needed, features.height, features.width);
  std::vector<uint8_t> samples(static_cast<size_t>(int64_t{features.width} * features.height * 3));
  if (WebPDecodeRGBInto(data, bytes.size(), samples.data(), samples.size(), 3 * features.width) == nullptr) {
    fail_data("[data] expected a WebP image, got damaged pixels ({})", label);
  }
  to_planes(samples, 3, features.height, features.width, image);
}

#endif
#if defined(ONETAP_HAVE_PNG)

std::vector<uint8_t> interleaved(const Image& image) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t pixels = image.pixels.size() / channels;
  std::vector<uint8_t> samples(image.pixels.size());
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i) samples[i * channels + c] = image.pixels[c * pixels + i];
  }
  return samples;
}

#endif

}  // namespace

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool is_image_name(const std::filesystem::path& path) {
  const std::string extension = lower_extension(path);
#if defined(ONETAP_HAVE_WEBP)
  if (extension == ".webp") return true;
#endif
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".bmp";
}

void decode_image(std::string_view bytes, std::string_view label, Image& image, const EighthsNeeded& needed) {
  if (bytes.substr(0, 3) == "\xFF\xD8\xFF") {
#if defined(ONETAP_HAVE_JPEG)
    return decode_jpeg(bytes, label, image, needed);
#else
    fail_usage("[data] this build cannot read JPEG: it was built without libjpeg-turbo ({})", label);
#endif
  }
  if (bytes.substr(0, 8) == std::string_view("\x89PNG\r\n\x1A\n", 8)) {
#if defined(ONETAP_HAVE_PNG)
    return decode_png(bytes, label, image, needed);
#else
    fail_usage("[data] this build cannot read PNG: it was built without libpng ({})", label);
#endif
  }
  if (bytes.substr(0, 4) == "RIFF" && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
#if defined(ONETAP_HAVE_WEBP)
    return decode_webp(bytes, label, image, needed);
#else
    fail_usage("[data] this build cannot read WebP: it was built without libwebp ({})", label);
#endif
  }
  if (looks_like_bmp(bytes)) {
    const BmpSize size = bmp_size(bytes, label);
    check_size(size.width, size.height, label);
    ask(needed, size.height, size.width);
    return decode_bmp(bytes, label, image);
  }
  fail_data("[data] expected a JPEG, PNG, WebP or BMP image, got {} other bytes ({})", bytes.size(), label);
}

std::string encode_png(const Image& image) {
#if defined(ONETAP_HAVE_PNG)
  const bool size_ok = image.width >= 1 && image.height >= 1 && image.width <= kMaxPixels / image.height;
  if ((image.channels != 1 && image.channels != 3) || !size_ok ||
      static_cast<int64_t>(image.pixels.size()) != image.channels * image.height * image.width) {
    fail_usage("[data] expected a grey or RGB image of at most {} pixels, got {} planes of {}x{} in {} bytes",
               kMaxPixels, image.channels, image.height, image.width, image.pixels.size());
  }
  png_image writer{};
  writer.version = PNG_IMAGE_VERSION;
  writer.width = static_cast<png_uint_32>(image.width);
  writer.height = static_cast<png_uint_32>(image.height);
  writer.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const std::vector<uint8_t> samples = interleaved(image);
  // Room for the worst case rather than a first pass that only measures: compressing twice takes twice as long.
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(writer);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&writer, bytes.data(), &size, 0, samples.data(), 0, nullptr) == 0) {
    fail("[data] cannot write a PNG image of {}x{}: {}", image.height, image.width, writer.message);
  }
  bytes.resize(size);
  return bytes;
#else
  fail_usage("[data] this build cannot write PNG: it was built without libpng ({}x{} pixels)", image.width,
             image.height);
#endif
}

}  // namespace onetap
