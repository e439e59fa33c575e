// One pass over a data set as batches, prepared ahead by worker threads: finished, or packed for a GPU to finish.
//
// What a batch holds depends on (seed, epoch, batch number) alone: not on the number of workers, and not on
// whether the pass began at its first batch or, after a resume, somewhere inside.
#pragma once

#include "onetap/base/portion.h"
#include "onetap/batches/packed.h"
#include "onetap/data/dataset.h"
#include "onetap/data/transform.h"
#include "onetap/nn/torch.h"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace onetap {

struct Batch {
  torch::Tensor images;  // [N, 3, size, size] float
  torch::Tensor labels;  // [N] int64
  PackedBatch packed;    // in place of both, from a stream that packs
};

struct StreamOptions {
  View view;
  int64_t batch_size = 128;
  int64_t workers = 1;

  int64_t images = 0;  // without training: only the first so many; 0 means all
  bool train = false;  // shuffled and augmented; else in order, test view
  AugmentOptions augment;
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t first_batch = 0;

  bool packed = false;  // images as bytes, to be cropped and normalised by crop_packed()
  bool pinned = false;  // packed batches in page-locked memory, which a GPU copies without the CPU
  // Of several processes. In training each takes its portion of every batch. In a test each takes whole batches: number
  // index, index + of, index + 2 of, ... Together they read what one process would.
  Part part;

  // Called at least every 100 ms while next() waits for a batch; true ends the pass there.
  std::function<bool()> stopped;
};

class BatchStream {
 public:
  // kFailure if the system cannot start a worker's thread.
  BatchStream(const Dataset& data, const StreamOptions& options);
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  // Workers end after the image they are reading. One whose read does not return within a second is left behind to end
  // by itself, with what it uses, if a shared_ptr owns the data set; otherwise this waits for it.
  ~BatchStream();

  // The next batch; false at the end, and where options.stopped ended a wait. An error of a worker (an image that does
  // not decode) is thrown here.
  bool next(Batch& batch);
  bool next(PackedBatch& batch);
  // Whether next() would return at once.
  bool ready() const;
  // Whether options.stopped ended the pass.
  bool stopped() const { return stopped_; }
  // Seconds that next() waited, in all.
  double waited() const { return waited_; }

  static int64_t batch_count(int64_t images, int64_t batch_size) { return (images + batch_size - 1) / batch_size; }

 private:
  class Pass;

  void end_workers();

  std::shared_ptr<Pass> pass_;
  std::vector<std::thread> threads_;
  std::function<bool()> should_stop_;
  bool stopped_ = false;
  double waited_ = 0;
};

}  // namespace onetap
