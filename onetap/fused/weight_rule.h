// How a convolution's weights get into a fused step, and what their gradients do to its parameters: by its method.
#pragma once

#include "onetap/fused/ops.h"
#include "onetap/graph/graph.h"
#include "onetap/nn/graph_module.h"

#include <functional>
#include <memory>
#include <string>

namespace onetap::fused {

class WeightRule {
 public:
  virtual ~WeightRule() = default;
  // packed = the effective weight at the step's temperature, in the activations' type.
  virtual void pack(at::ArrayRef<ConvState> convs, const StepValues& values) = 0;
  // From packed's gradients to those of the parameters, and one step of SGD.
  virtual void update(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) = 0;
};

// Kernel areas that the kernels for weights are compiled for.
bool has_kernel_area(int64_t area);
// Windows of depthwise convolutions that there are kernels for.
bool has_depthwise_kernel(Extent2 kernel);
// Whether Ops::pack_weights and update_convs compute what the convolution's method says, for its kernel.
bool has_kernels(const Node& node, const TapLayout& layout);

using TensorByName = std::function<torch::Tensor(const std::string&)>;

struct PackedForm {
  torch::ScalarType type = torch::kFloat32;       // of activations
  int64_t (*padded)(int64_t channels) = nullptr;  // to how many channels; null: as many as there are
};

// The rules of a network. Methods that Ops has kernels for (dense, and attention with one tap) go through them, many
// layers at a time. For every other one autograd runs over the layer's soft_weight(): it needs nothing but the layer.
class WeightRules {
 public:
  explicit WeightRules(std::shared_ptr<Ops> ops);

  // A layer of the module with its rule and what that needs; `packed` is yet to be made.
  ConvState make(const nn::GraphModule& module, const Node& node, const TensorByName& tensor,
                 const TensorByName& momentum) const;
  // A convolution, with room for `packed` in channels-last memory.
  ConvState make_conv(const nn::GraphModule& module, const Node& node, const TensorByName& tensor,
                      const TensorByName& momentum, const PackedForm& form) const;

  // Sets the rule of a convolution whose weight and layer are there, and what that rule needs.
  void choose(ConvState& conv, const Node& node, const TensorByName& tensor, const TensorByName& momentum) const;

  void pack(at::ArrayRef<ConvState> convs, const StepValues& values) const;
  void update(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) const;

 private:
  std::unique_ptr<WeightRule> kernels_, autograd_;
};

}  // namespace onetap::fused
