#include "onetap/data/exif.h"

#include <optional>
#include <string>

namespace onetap {
namespace {

constexpr uint32_t kOrientationTag = 274;
constexpr uint32_t kShort = 3;

// A TIFF structure, whose every read is inside it or nothing.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), big_endian_(bytes.substr(0, 2) == "MM") {}

  bool valid() const { return (big_endian_ || bytes_.substr(0, 2) == "II") && number(2, 2) == 42u; }

  std::optional<uint32_t> number(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t from = big_endian_ ? at + i : at + size - 1 - i;
      value = value << 8 | static_cast<uint8_t>(bytes_[from]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

// Of the first image file directory, which is the one about the image itself.
int orientation_of(const Tiff& tiff) {
  const auto directory = tiff.number(4, 4);
  if (!tiff.valid() || !directory) return 1;
  const auto entries = tiff.number(*directory, 2);
  for (size_t i = 0; i < entries.value_or(0); ++i) {
    const size_t entry = size_t{*directory} + 2 + 12 * i;
    const auto tag = tiff.number(entry, 2), type = tiff.number(entry + 2, 2), count = tiff.number(entry + 4, 4);
    const auto value = tiff.number(entry + 8, 2);
    if (!tag || !value) return 1;
    if (*tag != kOrientationTag) continue;
    const bool known = type == kShort && count == 1u && *value >= 1 && *value <= 8;
    return known ? static_cast<int>(*value) : 1;
  }
  return 1;
}

}  // namespace

int jpeg_orientation(std::string_view bytes) {
  constexpr char kFill = '\xFF', kApp1 = '\xE1', kStartOfScan = '\xDA', kEnd = '\xD9';
  const std::string_view signature("Exif\0\0", 6);
  size_t at = 2;  // after the marker of the start
  while (at + 4 <= bytes.size() && bytes[at] == kFill) {
    const char marker = bytes[at + 1];
    if (marker == kFill) {  // any number of them may stand before a marker
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEnd) return 1;
    const size_t length = size_t{static_cast<uint8_t>(bytes[at + 2])} << 8 | static_cast<uint8_t>(bytes[at + 3]);
    if (length < 2 || length > bytes.size() - at - 2) return 1;
    const std::string_view segment = bytes.substr(at + 4, length - 2);
    if (marker == kApp1 && segment.substr(0, signature.size()) == signature) {
      return orientation_of(Tiff(segment.substr(signature.size())));
    }
    at += 2 + length;
  }
  return 1;
}

Upright::Upright(int orientation, int64_t stored_height, int64_t stored_width)
    : rows_reversed(orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7),
      columns_reversed(orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) {
  const bool transposed = orientation >= 5;
  height = transposed ? stored_width : stored_height;
  width = transposed ? stored_height : stored_width;
  first = (rows_reversed ? (stored_height - 1) * stored_width : 0) + (columns_reversed ? stored_width - 1 : 0);
  const int64_t along_row = columns_reversed ? -1 : 1;
  const int64_t down_column = rows_reversed ? -stored_width : stored_width;
  row_step = transposed ? along_row : down_column;
  column_step = transposed ? down_column : along_row;
}

}  // namespace onetap
