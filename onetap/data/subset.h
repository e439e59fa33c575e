// Parts of a data set: some of its images by number, and the seeded choices of them.
#pragma once

#include "onetap/data/dataset.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace onetap {

// Some images of another set, in the order of `kept`.
class SubsetDataset : public Dataset {
 public:
  SubsetDataset(std::shared_ptr<const Dataset> all, std::vector<uint32_t> kept)
      : all_(std::move(all)), kept_(std::move(kept)) {}

  int64_t size() const override { return static_cast<int64_t>(kept_.size()); }
  int64_t label(int64_t index) const override { return all_->label(at(index)); }
  void read(int64_t index, Image& image) const override { all_->read(at(index), image); }
  void read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const override {
    all_->read_reduced(at(index), needed, image);
  }
  std::string describe(int64_t index) const override { return all_->describe(at(index)); }
  std::vector<std::string> unreadable() const override { return all_->unreadable(); }

 private:
  int64_t at(int64_t index) const { return kept_.at(static_cast<size_t>(index)); }

  std::shared_ptr<const Dataset> all_;
  std::vector<uint32_t> kept_;
};

// At most `limit` images, as many of every class as can be (the first classes have one more), drawn by `seed`, in the
// order of the set. The set itself if it has no more.
std::shared_ptr<const Dataset> limited(std::shared_ptr<const Dataset> data, int64_t limit, uint64_t seed);

struct HeldOut {
  std::shared_ptr<const Dataset> rest, held;
};

// Sets a share of every class aside, rounded, at least one image; drawn by `seed`, in the order of the set. kData for a
// class with fewer than two images.
HeldOut hold_out(const std::shared_ptr<const Dataset>& data, double share, uint64_t seed);

}  // namespace onetap
