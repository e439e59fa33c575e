// Readers hand out plain byte images; what a network sees of them is decided in transform.h.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace onetap {

// Bytes in planes: all of red, then green, then blue, rows from the top.
struct Image {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
  int eighths = 8;  // of the whole image's height and width, rounded up, that these pixels are
};

// Told the height and width of a whole image, says how many eighths of them are enough: 1 to 8.
using EighthsNeeded = std::function<int(int64_t height, int64_t width)>;

// A labelled set of images. Every method may be called from several threads at once. One that a shared_ptr owns is kept
// alive by those who still read it: a read may hang (a file system that does not answer) and outlast everybody else.
class Dataset : public std::enable_shared_from_this<Dataset> {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;
  // How many images "the first `limit`" are; 0 means all.
  int64_t first(int64_t limit) const { return limit > 0 && limit < size() ? limit : size(); }
  // Fills `image`, reusing its memory. kData if the file behind it does not decode.
  virtual void read(int64_t index, Image& image) const = 0;
  // The same, in fewer pixels where those are enough and the file can be decoded so for less work (JPEG). `needed` is
  // asked once.
  virtual void read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const;
  // What to call image `index` in a message.
  virtual std::string describe(int64_t index) const;
  // Files that were to be read so far and could not be decoded, in the order of their names; another image took the
  // place of each (see folder.h).
  virtual std::vector<std::string> unreadable() const { return {}; }
};

// Images of one size, held in memory.
class MemoryDataset : public Dataset {
 public:
  MemoryDataset(int64_t channels, int64_t height, int64_t width)
      : channels_(channels), height_(height), width_(width) {}

  void add(const uint8_t* pixels, int64_t label);
  void reserve(int64_t images);
  int64_t image_bytes() const { return channels_ * height_ * width_; }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }
  void read(int64_t index, Image& image) const override;

 private:
  int64_t channels_, height_, width_;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
};

// Per-channel mean and standard deviation of pixel values scaled to 0..1.
struct Normalisation {
  std::array<float, 3> mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> sd{0.25f, 0.25f, 0.25f};
};

// A data set as a training run sees it.
struct DataSource {
  std::string spec;  // as typed: "cifar10:DIR"
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  // Held out of the training set, to choose among epochs; null unless it was asked for.
  std::shared_ptr<const Dataset> validation;
  std::vector<std::string> classes;
  // Height and width of every image, or 0 where they vary (image folders).
  int64_t image_size = 0;
  Normalisation normalisation;  // its own; a recipe may have another (recipe_normalisation())
  // Paths in an image folder that are named like images and are no files (FIFOs, devices, folders), and links to
  // folders below those of classes: left out.
  std::vector<std::string> skipped;
  // Files in an image folder of formats that are not read: how many, by the end of their names (".gif", "" for none).
  std::map<std::string, int64_t> other_files;
  int64_t images_outside = 0;  // images in an image folder that are in no folder of a class: left out
};

}  // namespace onetap
