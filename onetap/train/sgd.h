// Stochastic gradient descent with momentum, as torch::optim::SGD computes it.
//
// Our own because its state must be written by name and read back bit for bit on LibTorch 1.13 and 2.x alike.
#pragma once

#include "onetap/train/optimizer.h"

namespace onetap {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

class Sgd : public Optimizer {
 public:
  Sgd(const torch::nn::Module& module, const SgdOptions& options, const nn::ParameterRules& rules = {});

  void step(double learning_rate) override;
  void restart() override;
  // The momentum buffers, named as the parameters are.
  const nn::NamedTensors& state() const override { return momentum_; }

 private:
  SgdOptions options_;
  nn::NamedTensors momentum_;
};

}  // namespace onetap
