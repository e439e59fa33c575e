// A network whose steps LibTorch's autograd computes: for those without a fused form. What it may hold is what
// GraphModule runs.
//
// Weights that Ops has kernels for (dense convolutions, and attention with one tap) enter the forward pass as tensors
// of the activations' type in channels-last memory, made by one kernel for all; autograd gives their gradients, and
// another kernel makes new parameters of them. Every other parameter autograd sees itself.
#pragma once

#include "onetap/fused/step_network.h"
#include "onetap/fused/weight_rule.h"
#include "onetap/nn/graph_module.h"

#include <memory>
#include <vector>

namespace onetap::fused {

struct AutogradOptions {
  torch::ScalarType type = torch::kFloat32;  // of activations
  std::vector<nn::ParameterRule> rules;      // of the module's parameters, in order; empty: the usual one for all
  double logit_decay = 1;                    // that of UpdateOptions, which kernels give to attention logits
};

class AutogradNetwork : public StepNetwork {
 public:
  // `momenta` are named as the parameters are.
  AutogradNetwork(nn::GraphModule module, const nn::NamedTensors& momenta, const AutogradOptions& options,
                  std::shared_ptr<Ops> ops);

  int64_t input_channels() const override { return 3; }
  void pack(const StepValues& values) override;
  torch::Tensor forward(const torch::Tensor& images) override;
  void backward(const torch::Tensor& dlogits, bool add) override;
  void update(const StepValues& values, const UpdateOptions& options) override;
  std::vector<int64_t> gradient_sizes() const override;
  void backward_over_ranks(const torch::Tensor& dlogits, bool add, GradientSum& sum) override;
  void pack_for_inference() override {}
  torch::Tensor infer(const torch::Tensor& images) override;
  std::vector<LoneConvolution> lone_convolutions(int64_t images) const override;

  // Convolutions whose weights are made by kernels.
  size_t kernel_convs() const { return convs_.size(); }

 private:
  void forget_gradients();

  nn::GraphModule module_;
  AutogradOptions options_;
  std::shared_ptr<Ops> ops_;
  WeightRules rules_;
  std::vector<ConvState> convs_;
  std::vector<PlainState> plain_;
  std::vector<torch::Tensor> leaves_;  // what gradients are asked of: packed weights, then the parameters of plain_
  nn::ForwardInputs inputs_;
  torch::Tensor logits_;  // from forward to backward
};

}  // namespace onetap::fused
