// Adding up scores batch by batch, for the evaluations of this module.
#pragma once

#include "onetap/train/evaluate.h"
#include "onetap/train/finite.h"

#include <cmath>
#include <limits>

namespace onetap {

inline void check_test_loss(double loss, const char* form) {
  if (std::isfinite(loss)) return;
  throw NotFinite(std::string("[eval] the ") + form + " test loss became " + not_finite_text(loss));
}

struct ScoreSums {
  double loss = 0;
  int64_t right = 0;

  // The loss is no number once an output is not: one of minus infinity alone would leave it finite.
  void add(const torch::Tensor& logits, const torch::Tensor& labels) {
    if (!torch::isfinite(logits).all().item<bool>()) loss = std::numeric_limits<double>::quiet_NaN();
    loss += torch::nn::functional::cross_entropy(
                logits, labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                .item<double>();
    right += logits.argmax(1).eq(labels).sum().item<int64_t>();
  }

  // NotFinite naming the `form` of the network if the loss is not.
  Score score(int64_t images, const char* form) const {
    check_test_loss(loss, form);
    return {static_cast<double>(right) / static_cast<double>(images), loss / static_cast<double>(images)};
  }
};

}  // namespace onetap
