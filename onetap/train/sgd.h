// Stochastic gradient descent with momentum, as torch::optim::SGD computes it.
//
// Our own because its state must be written by name and read back bit for bit on LibTorch 1.13 and 2.x alike.
#pragma once

#include "onetap/nn/parameter_rule.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/nn/torch.h"

#include <vector>

namespace onetap {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

class Sgd {
 public:
  // kFailure if a rule is for no parameter of the module.
  Sgd(const torch::nn::Module& module, const SgdOptions& options, const nn::ParameterRules& rules = {});

  void zero_grad();
  // One update of every parameter that has a gradient.
  void step(double learning_rate);
  // Momentum back to zero.
  void restart();

  // The momentum buffers, named as the parameters are.
  const nn::NamedTensors& state() const { return momentum_; }
  // In the same order.
  const std::vector<nn::ParameterRule>& rules() const { return rules_; }

 private:
  SgdOptions options_;
  nn::NamedTensors parameters_;
  nn::NamedTensors momentum_;
  std::vector<nn::ParameterRule> rules_;
};

}  // namespace onetap
