// What turns gradients into updates of parameters.
//
// Our own because its state must be written by name and read back bit for bit on LibTorch 1.13 and 2.x alike.
#pragma once

#include "onetap/nn/parameter_rule.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/nn/torch.h"

#include <memory>
#include <string>
#include <vector>

namespace onetap {

class Optimizer {
 public:
  // kFailure if a rule is for no parameter of the module.
  Optimizer(const torch::nn::Module& module, const nn::ParameterRules& rules);
  virtual ~Optimizer() = default;

  void zero_grad();
  // One update of every parameter that has a gradient.
  virtual void step(double learning_rate) = 0;
  // The state back to what it was before the first step.
  virtual void restart() = 0;
  // What it remembers of these parameters, back to what it was.
  void forget(const std::vector<std::string>& parameters);
  // All that it remembers between steps, under the names of parameters, or those and more behind a dot.
  virtual const nn::NamedTensors& state() const = 0;
  // In the order of the module's parameters.
  const std::vector<nn::ParameterRule>& rules() const { return rules_; }

 protected:
  nn::NamedTensors parameters_;
  std::vector<nn::ParameterRule> rules_;
};

}  // namespace onetap
