// What a training makes small: cross-entropy with labels, and the distance to a teacher's outputs.
#pragma once

#include "onetap/base/portion.h"
#include "onetap/nn/torch.h"

namespace onetap::nn {

struct Objective {
  double label_smoothing = 0;      // share of a label spread over all classes
  double teacher_weight = 0;       // share of the loss that compares with a teacher, where there is one
  double teacher_temperature = 1;  // both networks' logits are divided by it first
};

// What the logits of some images are compared with.
struct Targets {
  torch::Tensor labels;         // [N] int64
  torch::Tensor others, share;  // of mixed images: labels of the images mixed in; one float, the share of `labels`
  torch::Tensor teacher;        // [N, classes] logits; undefined: no teacher

  // Labels alone.
  Targets(torch::Tensor of_images) : labels(std::move(of_images)) {}  // NOLINT(google-explicit-constructor)

  // Those of some of the images.
  Targets part(const Portion& portion) const;
  // The label of each image, of a mixed one that with the larger share.
  torch::Tensor main_labels() const;
};

// (1 - a) * CE(logits, labels) + a * t^2 * KL(softmax(teacher / t) || softmax(logits / t)), the mean over images, with
// a = teacher_weight and t = teacher_temperature. The cross-entropy of mixed images is that with both labels, by share.
torch::Tensor objective_loss(const torch::Tensor& logits, const Targets& targets, const Objective& objective);

}  // namespace onetap::nn
