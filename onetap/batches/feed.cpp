#include "onetap/batches/feed.h"

#ifdef ONETAP_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace onetap {

#ifdef ONETAP_CUDA
// Copies on a stream of their own, beside the work on the current one.
class Feed::Uploads {
 public:
  explicit Uploads(torch::Device device) : device_(device) {
    if (device.is_cuda()) stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  }

  PackedBatch start(const PackedBatch& host) {
    if (!stream_) return host;
    const c10::cuda::CUDAStreamGuard guard(*stream_);
    PackedBatch batch = host.to(device_);
    arrived_.record(*stream_);
    return batch;
  }

  // The current stream may use what was started last.
  void finish(const PackedBatch& batch) {
    if (!stream_) return;
    const auto current = c10::cuda::getCurrentCUDAStream(device_.index());
    arrived_.block(current);
    // Its memory is the other stream's, and may be taken again only when this one is done with it.
    for (const auto& tensor : {batch.bytes, batch.entries, batch.labels}) tensor.record_stream(current.unwrap());
    before_.synchronize();
    before_.record(current);
  }

  void wait_for_device() const {
    if (stream_) c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
  }

 private:
  torch::Device device_;
  std::optional<c10::cuda::CUDAStream> stream_;  // on a GPU
  at::cuda::CUDAEvent arrived_;
  at::cuda::CUDAEvent before_;  // all that was under way when the last batch was handed out
};
#else
class Feed::Uploads {
 public:
  explicit Uploads(torch::Device device) : device_(device) {}
  PackedBatch start(const PackedBatch& host) const { return host.to(device_); }
  void finish(const PackedBatch&) const {}
  void wait_for_device() const {
    if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  }

 private:
  torch::Device device_;
};
#endif

Feed::Feed(std::unique_ptr<BatchStream> stream, torch::Device device)
    : stream_(std::move(stream)), uploads_(std::make_unique<Uploads>(device)) {}

Feed::~Feed() = default;

void Feed::stage() {
  PackedBatch host;
  if (stream_->next(host)) staged_ = uploads_->start(host);
}

bool Feed::next(PackedBatch& batch) {
  if (!staged_) {
    // While the device still works, it does not wait.
    if (!stream_->ready()) uploads_->wait_for_device();
    stage();
  }
  if (!staged_) return false;
  batch = std::move(*staged_);
  staged_.reset();
  uploads_->finish(batch);
  if (stream_->ready()) stage();
  return true;
}

}  // namespace onetap
