// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as torch::optim::AdamW computes it.
#pragma once

#include "onetap/train/optimizer.h"

namespace onetap {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

class AdamW : public Optimizer {
 public:
  AdamW(const torch::nn::Module& module, const AdamWOptions& options, const nn::ParameterRules& rules = {});

  void step(double learning_rate) override;
  void restart() override;
  // NAME.mean and NAME.square of every parameter, and the number of steps as "steps".
  const nn::NamedTensors& state() const override { return state_; }

 private:
  AdamWOptions options_;
  nn::NamedTensors state_;  // "steps" first, then two of every parameter
};

}  // namespace onetap
