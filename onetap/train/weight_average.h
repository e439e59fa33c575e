// The moving average of a network's weights and running statistics over the steps (EMA): what a run tests, keeps and
// freezes in place of the weights of the last step, where the recipe says so.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"

#include <string>
#include <vector>

namespace onetap {

class WeightAverage {
 public:
  // Begins with the module's present weights. `decay`: the share of itself that it keeps every step; 0: no average.
  WeightAverage(const nn::GraphModule& module, double decay);

  bool active() const { return decay_ > 0; }
  // After step `step` of the run; the first is 1.
  void update(int64_t step);
  // Its tensors, named as the module's are; those that cannot be averaged are the module's own.
  const nn::NamedTensors& state() const { return state_; }

  // The average becomes what the module holds now: within a Scope, the average with what was changed since.
  void take_present();
  // Likewise of these tensors alone.
  void take_present(const std::vector<std::string>& names);

  // The average stands in the module's tensors while this lives, and the module's own values after it.
  class Scope {
   public:
    explicit Scope(const WeightAverage& average);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    const WeightAverage& average_;
    std::vector<torch::Tensor> own_;
  };

 private:
  double decay_;
  nn::NamedTensors state_;
  std::vector<torch::Tensor> values_, averages_;  // the module's, and theirs
};

}  // namespace onetap
