#include "onetap/freeze/recalibrate.h"

namespace onetap {
namespace {

// The share of the newest batch in the running statistics; as it was when this goes.
class NormMomentum {
 public:
  explicit NormMomentum(const nn::GraphModule& module) {
    for (const auto& child : module->modules()) {
      if (auto* norm = child->as<torch::nn::BatchNorm2d>()) norms_.emplace_back(norm, norm->options.momentum());
    }
  }
  NormMomentum(const NormMomentum&) = delete;
  NormMomentum& operator=(const NormMomentum&) = delete;
  ~NormMomentum() {
    for (auto& [norm, before] : norms_) norm->options.momentum(before);
  }

  void set(double share) {
    for (auto& [norm, before] : norms_) norm->options.momentum(share);
  }

 private:
  using Momentum = std::decay_t<decltype(std::declval<torch::nn::BatchNormOptions&>().momentum())>;
  std::vector<std::pair<torch::nn::BatchNorm2dImpl*, Momentum>> norms_;
};

}  // namespace

int64_t recalibrate(nn::GraphModule& module, const Dataset& train, const RecalibrateOptions& options) {
  const torch::NoGradGuard no_grad;
  module->train();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  NormMomentum momentum(module);
  BatchStream stream(train, options.stream);
  Batch batch;
  int64_t images = 0;
  for (int64_t batches = 0; images < options.images && stream.next(batch); ++batches) {
    // The last batch of a pass may hold a few images, whose statistics would count like a whole batch's.
    if (batches > 0 && batch.images.size(0) < options.stream.batch_size) break;
    momentum.set(1.0 / static_cast<double>(batches + 1));  // the mean of all so far
    module->forward(batch.images);
    images += batch.images.size(0);
    if (options.progress) options.progress(images);
  }
  return images;
}

}  // namespace onetap
