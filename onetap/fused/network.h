// A network that trains without autograd: forward, backward and update of a fixed list of fused steps.
#pragma once

#include "onetap/fused/ops.h"
#include "onetap/fused/plan.h"
#include "onetap/fused/side_stream.h"
#include "onetap/fused/step_network.h"
#include "onetap/fused/weight_rule.h"
#include "onetap/nn/graph_module.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace onetap::fused {

struct NetworkOptions {
  torch::ScalarType type = torch::kFloat32;   // of activations and packed weights
  bool pad_channels = false;                  // to what tensor cores like
  int64_t worth_a_launch = 1 << 19;           // weights to be updated before the gradients of all are there
  std::vector<nn::ParameterRule> rules = {};  // of the module's parameters, in order; empty: the usual one for all
};

struct BackwardOptions {
  bool add = false;                  // to the gradients that are there
  std::function<void(size_t)> done;  // if given, called as soon as the gradient of convolution i is under way
};

// Channels rounded up to a number for which matrix units have fast kernels.
int64_t padded_channels(int64_t channels);

class Network : public StepNetwork {
 public:
  // The module's graph must have a plan; `momenta` are named as the parameters are.
  Network(nn::GraphModule module, const nn::NamedTensors& momenta, const NetworkOptions& options,
          std::shared_ptr<Ops> ops);

  int64_t input_channels() const override { return pad(3); }
  torch::ScalarType type() const { return options_.type; }

  void pack(const StepValues& values) override { rules_.pack(convs_, values); }
  void pack_for_inference() override;

  torch::Tensor forward(const torch::Tensor& images) override { return run(images, true); }
  torch::Tensor infer(const torch::Tensor& images) override { return run(images, false); }
  void backward(const torch::Tensor& dlogits, bool add) override { backward(dlogits, {add, {}}); }
  void backward(const torch::Tensor& dlogits, const BackwardOptions& options = {});
  // What backward() makes and update() reads: of the packed weights of convolutions, and of other parameters.
  std::vector<ConvState>& convs() { return convs_; }
  std::vector<PlainState>& plain() { return plain_; }
  void update(const StepValues& values, const UpdateOptions& options) override;
  // A layer is updated as soon as its gradient is there.
  void backward_and_update(const torch::Tensor& dlogits, bool add, const StepValues& values,
                           const UpdateOptions& options) override;

  // Of convolutions, last first; then of what is left.
  std::vector<int64_t> gradient_sizes() const override;
  void backward_over_ranks(const torch::Tensor& dlogits, bool add, GradientSum& sum) override;

  std::vector<LoneConvolution> lone_convolutions(int64_t images) const override;

 private:
  int64_t pad(int64_t channels) const { return options_.pad_channels ? padded_channels(channels) : channels; }
  // Where a step finds its own: a place in convs_, norms_ or shifts_, and its first parameter in plain_.
  struct Place {
    size_t state = 0, plain = 0;
  };
  // A fixed shift and its gradient's.
  struct ShiftMoves {
    torch::Tensor there, back;
  };

  // One with a method of its own: its weight is made as a convolution's is.
  void add_linear(const Node& node, const TensorByName& tensor, const TensorByName& momentum);
  void add_norm(const Step& step, const TensorByName& tensor);
  void add_shift(const Node& node, torch::Device device);

  torch::Tensor run(const torch::Tensor& images, bool training);
  // What a step makes of its values.
  torch::Tensor result_of(size_t index, bool training);
  torch::Tensor linear_weight(const Node& node, const Place& place) const;
  static size_t linear_bias(const Node& node, const Place& place);  // in plain_
  torch::Tensor subsampled(const torch::Tensor& x, const Node& node) const;
  torch::Tensor subsampled_backward(const torch::Tensor& dy, const torch::Tensor& x, const Node& node) const;

  nn::GraphModule module_;
  NetworkOptions options_;
  std::shared_ptr<Ops> ops_;
  WeightRules rules_;
  Plan plan_;
  std::vector<ConvState> convs_;
  std::vector<NormState> norms_;
  std::vector<ShiftMoves> shifts_;
  std::vector<PlainState> plain_;
  SideStream side_stream_;
  std::vector<Place> places_;                   // of each step
  std::vector<torch::Tensor> values_, extras_;  // of the pass under way
};

}  // namespace onetap::fused
