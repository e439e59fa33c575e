#include "onetap/batches/batch_stream.h"

#include "onetap/base/fail.h"
#include "onetap/data/read_view.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>

namespace onetap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStopInterval = std::chrono::milliseconds(100);
constexpr auto kEndPatience = std::chrono::seconds(1);

}  // namespace

// What the stream and its workers share. Each of them keeps it alive: a worker that hangs in a read outlives the
// stream.
class BatchStream::Pass {
 public:
  struct Prepared {
    Batch batch;
    std::exception_ptr error;
  };

  Pass(const Dataset& data, const StreamOptions& options)
      : data_(data),
        owned_data_(data.weak_from_this().lock()),
        options_(options),
        images_(options.train ? data.size() : data.first(options.images)),
        batches_(batch_count(images_, options.batch_size)),
        to_prepare_(options.first_batch + (options.train ? 0 : options.part.index)),
        to_deliver_(to_prepare_) {
    options_.stopped = nullptr;  // the stream's own; what it refers to may be gone before a worker is
    const auto size = static_cast<uint32_t>(images_);
    if (options.train) {
      order_ = permutation(size, Random(options.seed, Purpose::kShuffle, static_cast<uint32_t>(options.epoch)));
    } else {
      order_.resize(size);
      std::iota(order_.begin(), order_.end(), 0u);
    }
  }

  // A worker's whole life. `running` counts it from before it starts.
  void work() {
    while (prepare_one()) continue;
    remove_worker();
  }
  void add_worker() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++running_;
  }
  void remove_worker() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  // Whether all workers end within `patience`.
  bool workers_end(Clock::duration patience) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return running_ == 0; });
  }
  bool owns_data() const { return owned_data_ != nullptr; }

  bool ready() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return at_end() || is_prepared();
  }

  // Nothing at the end, or if `should_stop` says so while there is no batch.
  std::optional<Prepared> take(const std::function<bool()>& should_stop, bool& stopped) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!at_end() && !is_prepared()) {
      changed_.wait_for(lock, kStopInterval, [&] { return is_prepared(); });
      if (is_prepared() || !should_stop) continue;
      lock.unlock();
      stopped = should_stop();
      lock.lock();
      if (stopped) return std::nullopt;
    }
    if (at_end()) return std::nullopt;
    Prepared prepared = std::move(prepared_.at(to_deliver_));
    prepared_.erase(to_deliver_);
    to_deliver_ += stride();
    changed_.notify_all();
    return prepared;
  }

 private:
  // Both with the lock.
  bool at_end() const { return to_deliver_ >= batches_; }
  bool is_prepared() const { return prepared_.count(to_deliver_) != 0; }

  int64_t stride() const { return options_.train ? 1 : options_.part.of; }

  // Waits until a batch is due and prepares it; false if there is nothing left to do.
  bool prepare_one() {
    const int64_t ahead = (options_.workers + 2) * stride();
    int64_t number = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || to_prepare_ >= batches_ || to_prepare_ < to_deliver_ + ahead; });
      if (stop_ || to_prepare_ >= batches_) return false;
      number = to_prepare_;
      to_prepare_ += stride();
    }
    Prepared prepared;
    try {
      prepared.batch = prepare(number);
    } catch (...) {
      prepared.error = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return false;
    prepared_.emplace(number, std::move(prepared));
    changed_.notify_all();
    return true;
  }

  // Image `index` and what this pass shows of it.
  Crop read(uint32_t index, Image& image) const {
    const View& view = options_.view;
    const auto choose = [&](int64_t height, int64_t width) {
      if (!options_.train) return test_crop(height, width, view);
      const Random random(options_.seed, Purpose::kAugment, static_cast<uint32_t>(options_.epoch), index);
      return train_crop(height, width, view, options_.augment, random);
    };
    return read_for_view(data_, index, view, choose, image);
  }

  // If stopped on the way, part of a batch, which nobody will see.
  Batch prepare(int64_t number) const {
    int64_t first = number * options_.batch_size;
    int64_t count = std::min(options_.batch_size, images_ - first);
    if (options_.train) {
      const Portion mine = portion_of(count, options_.part.index, options_.part.of);
      first += mine.first;
      count = mine.count;
    }
    const View& view = options_.view;
    Batch batch;
    Image image;
    if (options_.packed) {
      Packer packer;
      for (int64_t i = 0; i < count && !stop_; ++i) {
        const uint32_t index = order_[static_cast<size_t>(first + i)];
        const Crop crop = read(index, image);
        packer.add(image, crop, data_.label(index));
      }
      if (!stop_) batch.packed = packer.pack(options_.pinned);
      return batch;
    }
    batch.images = torch::empty({count, 3, view.size, view.size}, torch::kFloat32);
    batch.labels = torch::empty({count}, torch::kInt64);
    float* pixels = batch.images.data_ptr<float>();
    int64_t* labels = batch.labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < count && !stop_; ++i) {
      const uint32_t index = order_[static_cast<size_t>(first + i)];
      const Crop crop = read(index, image);
      labels[i] = data_.label(index);
      crop_view(image, view, crop, pixels + i * view.floats());
    }
    return batch;
  }

  const Dataset& data_;
  const std::shared_ptr<const Dataset> owned_data_;  // the same, if a shared_ptr owns it
  StreamOptions options_;
  const int64_t images_;
  const int64_t batches_;
  std::vector<uint32_t> order_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Prepared> prepared_;  // by number
  int64_t to_prepare_;
  int64_t to_deliver_;
  int64_t running_ = 0;            // workers
  std::atomic<bool> stop_{false};  // written with the lock; workers look at it between images
};

BatchStream::BatchStream(const Dataset& data, const StreamOptions& options)
    : pass_(std::make_shared<Pass>(data, options)), should_stop_(options.stopped) {
  const int64_t workers = std::max<int64_t>(1, options.workers);
  threads_.reserve(static_cast<size_t>(workers));
  try {
    for (int64_t i = 0; i < workers; ++i) {
      pass_->add_worker();
      threads_.emplace_back([pass = pass_] { pass->work(); });
    }
  } catch (const std::system_error& problem) {
    pass_->remove_worker();  // the one that did not start
    const size_t started = threads_.size();
    end_workers();
    fail("[batches] expected {} worker threads, got {}: {}", workers, started, problem.code().message());
  }
}

BatchStream::~BatchStream() {
  end_workers();
}

void BatchStream::end_workers() {
  pass_->stop();
  const bool leave = pass_->owns_data() && !pass_->workers_end(kEndPatience);
  for (std::thread& thread : threads_) leave ? thread.detach() : thread.join();
}

bool BatchStream::ready() const {
  return pass_->ready();
}

bool BatchStream::next(PackedBatch& batch) {
  Batch any;
  if (!next(any)) return false;
  batch = std::move(any.packed);
  return true;
}

bool BatchStream::next(Batch& batch) {
  if (stopped_) return false;
  const auto start = Clock::now();
  auto prepared = pass_->take(should_stop_, stopped_);
  waited_ += std::chrono::duration<double>(Clock::now() - start).count();
  if (!prepared) return false;
  if (prepared->error) std::rethrow_exception(prepared->error);
  batch = std::move(prepared->batch);
  return true;
}

}  // namespace onetap
