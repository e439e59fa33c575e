// What a step of SGD does to one parameter, where it differs from the others.
#pragma once

#include "onetap/nn/torch.h"

#include <map>
#include <string>

namespace onetap::nn {

struct ParameterRule {
  double rate = 1;         // of the learning rate
  double decay = 1;        // of the weight decay
  bool unit_rows = false;  // its gradient is taken by unit_rows()

  bool is_usual() const { return rate == 1 && decay == 1 && !unit_rows; }
};

// By name; what is not there has the usual rule.
using ParameterRules = std::map<std::string, ParameterRule>;

// Every row of a gradient [rows, 2] as a unit vector, unless it is 0: for active shifts. Of the gradient of a whole
// step, so that neither parts of a batch nor ranks change it. Nothing waits for the device.
inline torch::Tensor unit_rows(const torch::Tensor& grad) {
  const auto length = torch::hypot(grad.select(1, 0), grad.select(1, 1)).unsqueeze(1);
  return grad / length.masked_fill(length == 0, 1.0);
}

}  // namespace onetap::nn
