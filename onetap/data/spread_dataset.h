// Some images of a set, evenly spread over it: image folders are sorted by class.
#pragma once

#include "onetap/data/dataset.h"

namespace onetap {

class SpreadDataset : public Dataset {
 public:
  // As many images of `whole` as asked, or all if there are no more.
  SpreadDataset(std::shared_ptr<const Dataset> whole, int64_t images)
      : whole_(std::move(whole)), size_(whole_->first(images)) {}

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return whole_->label(place(index)); }
  void read(int64_t index, Image& image) const override { whole_->read(place(index), image); }
  void read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const override {
    whole_->read_reduced(place(index), needed, image);
  }
  std::string describe(int64_t index) const override { return whole_->describe(place(index)); }

 private:
  int64_t place(int64_t index) const { return index * whole_->size() / size_; }

  std::shared_ptr<const Dataset> whole_;
  int64_t size_;
};

}  // namespace onetap
