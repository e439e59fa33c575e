#include "onetap/train/loader.h"

#include "onetap/data/read_view.h"
#include "onetap/train/resolve.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace onetap {

StreamOptions recipe_stream(const Recipe& recipe, const View& view, bool train) {
  StreamOptions options;
  options.view = view;
  options.batch_size = recipe.batch_size;
  options.workers = recipe.workers;
  options.train = train;
  options.augment = recipe_augment(recipe);
  options.seed = recipe.seed;
  return options;
}

BatchStream::BatchStream(const Dataset& data, const StreamOptions& options)
    : data_(data),
      options_(options),
      images_(options.train ? data.size() : data.first(options.images)),
      batches_(batch_count(images_, options.batch_size)),
      to_prepare_(options.first_batch + (options.train ? 0 : options.part.index)),
      to_deliver_(to_prepare_) {
  const auto size = static_cast<uint32_t>(images_);
  if (options.train) {
    order_ = permutation(size, Random(options.seed, Purpose::kShuffle, static_cast<uint32_t>(options.epoch)));
  } else {
    order_.resize(size);
    std::iota(order_.begin(), order_.end(), 0u);
  }
  for (int64_t i = 0; i < std::max<int64_t>(1, options.workers); ++i) threads_.emplace_back([this] { work(); });
}

BatchStream::~BatchStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BatchStream::work() {
  const int64_t ahead = (static_cast<int64_t>(options_.workers) + 2) * stride();
  for (;;) {
    int64_t number = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || to_prepare_ >= batches_ || to_prepare_ < to_deliver_ + ahead; });
      if (stop_ || to_prepare_ >= batches_) return;
      number = to_prepare_;
      to_prepare_ += stride();
    }
    Ready ready;
    try {
      ready.batch = prepare(number);
    } catch (...) {
      ready.error = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ready_.emplace(number, std::move(ready));
    }
    changed_.notify_all();
  }
}

Crop BatchStream::read(uint32_t index, Image& image) const {
  const View& view = options_.view;
  const auto choose = [&](int64_t height, int64_t width) {
    if (!options_.train) return test_crop(height, width, view);
    const Random random(options_.seed, Purpose::kAugment, static_cast<uint32_t>(options_.epoch), index);
    return train_crop(height, width, view, options_.augment, random);
  };
  return read_for_view(data_, index, view, choose, image);
}

Batch BatchStream::prepare(int64_t number) const {
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
    fused::Packer packer;
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t index = order_[static_cast<size_t>(first + i)];
      const Crop crop = read(index, image);
      packer.add(image, crop, data_.label(index));
    }
    batch.packed = packer.pack(options_.pinned);
    return batch;
  }
  batch.images = torch::empty({count, 3, view.size, view.size}, torch::kFloat32);
  batch.labels = torch::empty({count}, torch::kInt64);
  float* pixels = batch.images.data_ptr<float>();
  int64_t* labels = batch.labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t index = order_[static_cast<size_t>(first + i)];
    const Crop crop = read(index, image);
    labels[i] = data_.label(index);
    crop_view(image, view, crop, pixels + i * view.floats());
  }
  return batch;
}

bool BatchStream::ready() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return to_deliver_ >= batches_ || ready_.count(to_deliver_) != 0;
}

bool BatchStream::next(fused::PackedBatch& batch) {
  Batch any;
  if (!next(any)) return false;
  batch = std::move(any.packed);
  return true;
}

bool BatchStream::next(Batch& batch) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (to_deliver_ >= batches_) return false;
  const auto start = std::chrono::steady_clock::now();
  changed_.wait(lock, [&] { return ready_.count(to_deliver_) != 0; });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Ready ready = std::move(ready_.at(to_deliver_));
  ready_.erase(to_deliver_);
  to_deliver_ += stride();
  lock.unlock();
  changed_.notify_all();
  if (ready.error) std::rethrow_exception(ready.error);
  batch = std::move(ready.batch);
  return true;
}

}  // namespace onetap
