#include "onetap/data/bmp.h"

#include "onetap/base/fail.h"

#include <array>

namespace onetap {
namespace {

constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr uint32_t kPlain = 0, kBitFields = 3, kAlphaBitFields = 6;

struct Header {
  int64_t width = 0, height = 0;
  bool from_top = false;
  uint32_t bits = 0;
  size_t pixels = 0;  // where they begin
  size_t colours = 0, colour_count = 0, colour_bytes = 4;
  std::array<uint32_t, 3> masks{};  // red, green, blue; of 16 and 32 bits

  uint64_t row_bytes() const { return (static_cast<uint64_t>(width) * bits + 31) / 32 * 4; }
};

uint32_t read_bytes(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

[[noreturn]] void bad(std::string_view what, std::string_view label) {
  fail_data("[data] expected a BMP image, got {} ({})", what, label);
}

// The masks follow a header of 40 bytes, and lie in longer ones at the same place.
void read_masks(std::string_view bytes, std::string_view label, Header& header) {
  constexpr size_t kAt = kFileHeader + kInfoHeader;
  if (bytes.size() < kAt + 12) bad("a header without its colour masks", label);
  for (size_t c = 0; c < 3; ++c) {
    const uint32_t mask = read_bytes(bytes, kAt + 4 * c, 4);
    const uint32_t low = mask & (~mask + 1);
    // A run of ones: adding its lowest carries out of it.
    const bool is_run = mask != 0 && ((mask + low) & mask) == 0;
    if (!is_run || (header.bits == 16 && mask > 0xFFFF)) bad("colour masks that are not runs of bits", label);
    header.masks[c] = mask;
  }
}

void read_colours(std::string_view bytes, std::string_view label, size_t header_bytes, uint32_t used, Header& header) {
  header.colours = kFileHeader + header_bytes;
  const uint32_t most = 1u << header.bits;
  header.colour_count = used == 0 || used > most ? most : used;
  const size_t end = header.colours + header.colour_count * header.colour_bytes;
  if (end > bytes.size() || end > header.pixels) {
    // Old programs write fewer colours than they say; those that are there count.
    const size_t limit = std::min(bytes.size(), header.pixels);
    if (limit <= header.colours) bad("no colour table", label);
    header.colour_count = (limit - header.colours) / header.colour_bytes;
  }
  if (header.colour_count == 0) bad("no colour table", label);
}

Header read_header(std::string_view bytes, std::string_view label) {
  if (!looks_like_bmp(bytes) || bytes.size() < kFileHeader + kCoreHeader) bad("a damaged header", label);
  Header header;
  header.pixels = read_bytes(bytes, 10, 4);
  const size_t header_bytes = read_bytes(bytes, kFileHeader, 4);
  uint32_t compression = kPlain, used = 0;
  if (header_bytes == kCoreHeader) {
    header.width = read_bytes(bytes, 18, 2);
    header.height = read_bytes(bytes, 20, 2);
    header.bits = read_bytes(bytes, 24, 2);
    header.colour_bytes = 3;
  } else {
    if (header_bytes < kInfoHeader || bytes.size() < kFileHeader + kInfoHeader) bad("a damaged header", label);
    header.width = static_cast<int32_t>(read_bytes(bytes, 18, 4));
    header.height = static_cast<int32_t>(read_bytes(bytes, 22, 4));
    header.bits = read_bytes(bytes, 28, 2);
    compression = read_bytes(bytes, 30, 4);
    used = read_bytes(bytes, 46, 4);
  }
  header.from_top = header.height < 0;
  if (header.from_top) header.height = -header.height;
  if (header.width < 1 || header.height < 1) bad("a damaged header", label);
  const uint32_t bits = header.bits;
  const bool masked = compression == kBitFields || compression == kAlphaBitFields;
  if ((bits == 16 || bits == 32) && masked) {
    read_masks(bytes, label, header);
  } else if (compression != kPlain) {
    bad(fmt::format("compression {}, which is not read", compression), label);
  } else if (bits == 16) {
    header.masks = {0x7C00, 0x03E0, 0x001F};
  } else if (bits == 32) {
    header.masks = {0xFF0000, 0x00FF00, 0x0000FF};
  } else if (bits == 1 || bits == 4 || bits == 8) {
    read_colours(bytes, label, header_bytes, used, header);
  } else if (bits != 24) {
    bad(fmt::format("{} bits a pixel", bits), label);
  }
  return header;
}

// A field of 1 to 32 bits as 0..255.
uint8_t field_value(uint32_t pixel, uint32_t mask) {
  const uint32_t low = mask & (~mask + 1);
  const uint64_t most = mask / low, value = (pixel & mask) / low;
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

}  // namespace

bool looks_like_bmp(std::string_view bytes) {
  return bytes.substr(0, 2) == "BM";
}

BmpSize bmp_size(std::string_view bytes, std::string_view label) {
  const Header header = read_header(bytes, label);
  return {header.height, header.width};
}

void decode_bmp(std::string_view bytes, std::string_view label, Image& image) {
  const Header header = read_header(bytes, label);
  const uint64_t row_bytes = header.row_bytes(), all = row_bytes * static_cast<uint64_t>(header.height);
  if (header.pixels > bytes.size() || all > bytes.size() - header.pixels) {
    bad(fmt::format("{} bytes of pixels where {} belong",
                    bytes.size() - std::min<uint64_t>(bytes.size(), header.pixels), all),
        label);
  }
  image.channels = 3;
  image.height = header.height;
  image.width = header.width;
  image.eighths = 8;
  const auto plane = static_cast<size_t>(header.height * header.width);
  image.pixels.resize(3 * plane);
  for (int64_t y = 0; y < header.height; ++y) {
    const int64_t row = header.from_top ? y : header.height - 1 - y;
    const size_t start = header.pixels + static_cast<size_t>(row) * static_cast<size_t>(row_bytes);
    for (int64_t x = 0; x < header.width; ++x) {
      const auto column = static_cast<size_t>(x);
      std::array<uint8_t, 3> rgb{};
      if (header.bits <= 8) {
        const size_t bit = column * header.bits;
        const auto byte = static_cast<uint8_t>(bytes[start + bit / 8]);
        const size_t index = (byte >> (8 - header.bits - bit % 8)) & ((1u << header.bits) - 1);
        if (index >= header.colour_count) bad("a colour outside its table", label);
        const size_t colour = header.colours + index * header.colour_bytes;
        for (size_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(bytes[colour + 2 - c]);
      } else if (header.bits == 24) {
        for (size_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(bytes[start + 3 * column + 2 - c]);
      } else {
        const size_t size = header.bits / 8;
        const uint32_t pixel = read_bytes(bytes, start + size * column, size);
        for (size_t c = 0; c < 3; ++c) rgb[c] = field_value(pixel, header.masks[c]);
      }
      const auto at = static_cast<size_t>(y * header.width) + column;
      for (size_t c = 0; c < 3; ++c) image.pixels[c * plane + at] = rgb[c];
    }
  }
}

}  // namespace onetap
