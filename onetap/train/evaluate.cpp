#include "onetap/train/evaluate.h"

namespace onetap {
namespace {

struct Sums {
  double loss = 0;
  int64_t right = 0;

  void add(const torch::Tensor& logits, const torch::Tensor& labels) {
    loss += torch::nn::functional::cross_entropy(
                logits, labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                .item<double>();
    right += logits.argmax(1).eq(labels).sum().item<int64_t>();
  }

  Score score(int64_t images) const {
    return {static_cast<double>(right) / static_cast<double>(images), loss / static_cast<double>(images)};
  }
};

}  // namespace

std::optional<EvalResult> evaluate(nn::GraphModule& module, const Dataset& data, const EvalOptions& options) {
  const torch::NoGradGuard no_grad;
  struct TrainAgain {
    nn::GraphModule& module;
    ~TrainAgain() { module->train(); }
  } train_again{module};
  module->eval();

  const bool has_sal = !module->sal_layers().empty();
  Sums soft, hard;
  EvalResult result;
  BatchStream stream(data, options.stream);
  Batch batch;
  while (stream.next(batch)) {
    const auto images = batch.images.to(options.device).contiguous(torch::MemoryFormat::ChannelsLast);
    const auto labels = batch.labels.to(options.device);
    soft.add(module->forward(images), labels);
    if (has_sal) {
      const nn::ModeGuard guard(module, options.hard_mode);
      hard.add(module->forward(images), labels);
    }
    result.images += labels.size(0);
    if (options.progress && !options.progress(result.images)) return std::nullopt;
  }
  result.soft = soft.score(result.images);
  result.hard = has_sal ? hard.score(result.images) : result.soft;
  return result;
}

}  // namespace onetap
