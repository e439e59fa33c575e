// JPEG and PNG files for the tests, written with the libraries themselves.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <string>
#include <vector>

namespace onetap::testing {

// Interleaved RGB of one colour per quarter, so that planes, rows and columns cannot be mixed up unseen.
inline std::vector<uint8_t> quarters(int width, int height) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      rgb.push_back(x < width / 2 ? 200 : 40);
      rgb.push_back(y < height / 2 ? 180 : 60);
      rgb.push_back(x < width / 2 && y < height / 2 ? 250 : 10);
    }
  }
  return rgb;
}

inline std::string png_bytes(const std::vector<uint8_t>& samples, int width, int height,
                             png_uint_32 format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, samples.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, samples.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

inline std::string jpeg_bytes(const std::vector<uint8_t>& samples, int width, int height, int format = TJPF_RGB,
                              int subsampling = TJSAMP_444) {
  tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  tjCompress2(encoder, samples.data(), width, 0, height, format, &out, &size, subsampling, 95, 0);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  tjFree(out);
  tjDestroy(encoder);
  return bytes;
}

}  // namespace onetap::testing
