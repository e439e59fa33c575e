// What the engine makes steps of: a network that goes forward, backward and one step of SGD further.
//
// Both kinds work on the parameters and running statistics of a GraphModule and on the momenta of its optimiser
// themselves, so checkpoints, tests and freezing see what they did. On a GPU nothing in a step waits for the device or
// asks it for a value: a captured graph holds all of it.
#pragma once

#include "onetap/fused/convolutions.h"
#include "onetap/fused/ops.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/ranks/gradient_sum.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace onetap::fused {

class StepNetwork {
 public:
  virtual ~StepNetwork() = default;

  // Of the images: 3, or padded.
  virtual int64_t input_channels() const = 0;

  // Weights for the next forward pass.
  virtual void pack(const StepValues& values) = 0;
  // Logits in 32 bits.
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
  // After forward(): the gradients of every parameter, or more of them to `add` to those that are there.
  virtual void backward(const torch::Tensor& dlogits, bool add) = 0;
  virtual void update(const StepValues& values, const UpdateOptions& options) = 0;
  // The same as both one after the other.
  virtual void backward_and_update(const torch::Tensor& dlogits, bool add, const StepValues& values,
                                   const UpdateOptions& options) {
    backward(dlogits, add);
    update(values, options);
  }

  // For several processes: how many numbers each gradient has, and a backward pass that leaves the sums over ranks.
  virtual std::vector<int64_t> gradient_sizes() const = 0;
  virtual void backward_over_ranks(const torch::Tensor& dlogits, bool add, GradientSum& sum) = 0;

  // Weights as the module's present mode has them, for infer(), which goes by running statistics.
  virtual void pack_for_inference() = 0;
  virtual torch::Tensor infer(const torch::Tensor& images) = 0;

  // To know what the convolutions of a step cost alone.
  virtual std::vector<LoneConvolution> lone_convolutions(int64_t images) const = 0;
};

inline std::unordered_map<std::string, torch::Tensor> by_name(const nn::NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace onetap::fused
