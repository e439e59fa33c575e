#include "onetap/batches/recalibrate.h"

#include "onetap/batches/device_batches.h"

namespace onetap {
namespace {

// The share of the newest batch in the running statistics. When this goes, it is as it was, and so is the count of
// batches: statistics taken twice are the same state.
class NormMomentum {
 public:
  explicit NormMomentum(const nn::GraphModule& module) {
    for (const auto& child : module->modules()) {
      if (auto* norm = child->as<torch::nn::BatchNorm2d>()) {
        norms_.push_back({norm, norm->options.momentum(), norm->num_batches_tracked.clone()});
      }
    }
  }
  NormMomentum(const NormMomentum&) = delete;
  NormMomentum& operator=(const NormMomentum&) = delete;
  ~NormMomentum() {
    for (auto& [norm, momentum, batches] : norms_) {
      norm->options.momentum(momentum);
      norm->num_batches_tracked.copy_(batches);
    }
  }

  void set(double share) {
    for (auto& before : norms_) before.norm->options.momentum(share);
  }

 private:
  using Momentum = std::decay_t<decltype(std::declval<torch::nn::BatchNormOptions&>().momentum())>;
  struct Before {
    torch::nn::BatchNorm2dImpl* norm;
    Momentum momentum;
    torch::Tensor batches;
  };
  std::vector<Before> norms_;
};

}  // namespace

std::optional<int64_t> recalibrate(nn::GraphModule& module, const Dataset& train, const RecalibrateOptions& options) {
  const torch::NoGradGuard no_grad;
  module->train();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  NormMomentum momentum(module);
  DeviceBatches stream(train, options.stream, options.device);
  Batch batch;
  int64_t images = 0;
  for (int64_t batches = 0; images < options.images && stream.next(batch); ++batches) {
    // The last batch of a pass may hold a few images, whose statistics would count like a whole batch's.
    if (batches > 0 && batch.images.size(0) < options.stream.batch_size) break;
    momentum.set(1.0 / static_cast<double>(batches + 1));  // the mean of all so far
    module->forward(batch.images);
    images += batch.images.size(0);
    if (options.progress && !options.progress(images)) return std::nullopt;
  }
  if (options.stream.stopped && options.stream.stopped()) return std::nullopt;
  return images;
}

}  // namespace onetap
