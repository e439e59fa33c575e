// A trained network that a run learns from: its logits, by the kernels of a test, which a captured step can hold.
#pragma once

#include "onetap/fused/network.h"
#include "onetap/nn/graph_module.h"

#include <memory>

namespace onetap::fused {

class Teacher {
 public:
  // `module` is on the device, dense and in evaluation mode; it must not change afterwards.
  Teacher(const nn::GraphModule& module, const NetworkOptions& options, const std::shared_ptr<Ops>& ops);

  // In 32 bits. `images` may have other padded channels than the teacher's network takes.
  torch::Tensor logits(const torch::Tensor& images);

 private:
  std::unique_ptr<StepNetwork> network_;
};

}  // namespace onetap::fused
