// Adding up scores batch by batch, for the evaluations of this room.
#pragma once

#include "onetap/train/evaluate.h"

namespace onetap {

struct ScoreSums {
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

}  // namespace onetap
