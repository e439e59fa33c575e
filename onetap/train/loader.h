// One pass over a data set as batches, prepared ahead by worker threads: whole, or packed for a device to finish.
//
// What a batch holds depends on (seed, epoch, batch number) alone: not on the number of workers, and not on
// whether the pass began at its first batch or, after a resume, somewhere inside.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/data/transform.h"
#include "onetap/fused/packed.h"
#include "onetap/nn/torch.h"
#include "onetap/ranks/rank_place.h"
#include "onetap/recipe/recipe.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace onetap {

struct Batch {
  torch::Tensor images;       // [N, 3, size, size] float
  torch::Tensor labels;       // [N] int64
  fused::PackedBatch packed;  // in place of both, of a stream that packs
};

struct StreamOptions {
  View view;
  int64_t batch_size = 128;
  int64_t workers = 1;

  int64_t images = 0;  // of a test, the first so many; 0 means all
  bool train = false;  // shuffled and augmented; else in order, test view
  AugmentOptions augment;
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t first_batch = 0;

  bool packed = false;  // images as bytes, to be cropped and normalised elsewhere
  bool pinned = false;  // those in memory that a GPU fetches by itself

  // Of several processes: in training a part of every batch, in a test every so-manieth batch. Together they read what
  // one would, and a test computes the same batches.
  Part part;
};

// What a resolved recipe asks for, of an epoch's start.
StreamOptions recipe_stream(const Recipe& recipe, const View& view, bool train);

class BatchStream : public fused::PackedStream {
 public:
  BatchStream(const Dataset& data, const StreamOptions& options);
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  ~BatchStream() override;

  // The next batch, or false at the end. What a worker threw (an image that does not decode) is thrown here.
  bool next(Batch& batch);
  bool next(fused::PackedBatch& batch) override;
  bool ready() override;
  double waited() const override { return waited_; }

  static int64_t batch_count(int64_t images, int64_t batch_size) { return (images + batch_size - 1) / batch_size; }

 private:
  struct Ready {
    Batch batch;
    std::exception_ptr error;
  };

  void work();
  Batch prepare(int64_t number) const;
  int64_t stride() const { return options_.train ? 1 : options_.part.of; }
  // Image `index` and what this pass shows of it.
  Crop read(uint32_t index, Image& image) const;

  const Dataset& data_;
  const StreamOptions options_;
  const int64_t images_;
  const int64_t batches_;
  std::vector<uint32_t> order_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Ready> ready_;
  int64_t to_prepare_;
  int64_t to_deliver_;
  bool stop_ = false;
  double waited_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace onetap
