#include "onetap/data/dataset.h"

namespace onetap {

std::string Dataset::describe(int64_t index) const {
  return "image " + std::to_string(index);
}

void Dataset::read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const {
  read(index, image);
  needed(image.height, image.width);
}

void MemoryDataset::add(const uint8_t* pixels, int64_t label) {
  pixels_.insert(pixels_.end(), pixels, pixels + image_bytes());
  labels_.push_back(label);
}

void MemoryDataset::reserve(int64_t images) {
  pixels_.reserve(static_cast<size_t>(images * image_bytes()));
  labels_.reserve(static_cast<size_t>(images));
}

void MemoryDataset::read(int64_t index, Image& image) const {
  image.channels = channels_;
  image.height = height_;
  image.width = width_;
  image.eighths = 8;
  const auto begin = pixels_.begin() + index * image_bytes();
  image.pixels.assign(begin, begin + image_bytes());
}

}  // namespace onetap
