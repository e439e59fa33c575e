// A data set one of whose images hangs in its read, as a FIFO or a file system that does not answer does.
#pragma once

#include "onetap/data/dataset.h"

#include <condition_variable>
#include <mutex>

namespace onetap::testing {

class BlockedDataset : public Dataset {
 public:
  // `blocked`: index of the image; none if negative. `reads_before`: how often it can be read before it hangs. Ten
  // classes in turn, noise of 32x32.
  BlockedDataset(int64_t blocked, int64_t size, int64_t reads_before = 0)
      : blocked_(blocked), size_(size), reads_before_(reads_before) {}

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % 10; }
  void read(int64_t index, Image& image) const override {
    if (index == blocked_) {
      std::unique_lock<std::mutex> lock(mutex_);
      if (++reads_ > reads_before_) {
        changed_.notify_all();
        changed_.wait(lock, [&] { return released_; });
      }
    }
    image = {3, 32, 32, std::vector<uint8_t>(3 * 32 * 32)};
    uint32_t state = static_cast<uint32_t>(index) + 1;
    for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  }

  // Until somebody hangs.
  void wait_for_reader() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return reads_ > reads_before_; });
  }
  // The read returns, now and whenever it is called again.
  void release() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  const int64_t blocked_, size_, reads_before_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t reads_ = 0;
  mutable bool released_ = false;
};

}  // namespace onetap::testing
