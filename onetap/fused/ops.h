// What a fused training step is made of. Two sets: the reference, in LibTorch's own ops and in 32 bits, for any device;
// and CUDA kernels, which are held against it.
//
// Activations are [N, C, H, W] in channels-last memory, 32-bit or bfloat16, with C rounded up: channels beyond the
// network's are zero and stay zero. Parameters are the module's own, 32-bit and unpadded.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/parameter_rule.h"
#include "onetap/nn/torch.h"
#include "onetap/nn/trained_conv.h"

#include <vector>

namespace onetap::fused {

class WeightRule;

// A parameter, and what a step of SGD needs beside it.
struct PlainState {
  torch::Tensor parameter, momentum;
  torch::Tensor grad;  // at least as many floats as the parameter
  nn::ParameterRule rule = {};
};

// A convolution's parameters and their form for the step.
struct ConvState {
  torch::Tensor weight, weight_momentum;  // [D, C, kh, kw]
  torch::Tensor packed;                   // the effective weight, padded, of the activations' type
  torch::Tensor grad;                     // of packed

  // For pack_weights and update_convs: one tap's attention, [output blocks, input blocks, S]; undefined: an ordinary
  // convolution.
  torch::Tensor attention, attention_momentum;
  TapLayout layout;
  Relax relax = Relax::kSoftmax;

  std::shared_ptr<nn::TrainedConv> layer;  // null: an ordinary convolution
  std::vector<torch::Tensor> momenta;      // of the layer's parameters, in their order
  WeightRule* rule = nullptr;

  int64_t outputs() const { return weight.size(0); }
  int64_t inputs() const { return weight.size(1); }
  int64_t area() const { return weight.size(2) * weight.size(3); }
  // Of a tensor that is padded as `packed` is.
  torch::Tensor real_part(const torch::Tensor& padded) const {
    return padded.narrow(0, 0, outputs()).narrow(1, 0, inputs());
  }
};

// A batch norm, with the sum and ReLU after it.
struct NormState {
  torch::Tensor gamma, beta, running_mean, running_var, batches;
  bool relu = false;
  // From forward to backward, padded.
  torch::Tensor mean, inverse_sd, scale, shift;
  torch::Tensor gamma_grad, beta_grad;

  int64_t channels() const { return gamma.size(0); }
};

struct UpdateOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

// Device values of the present step: learning rate and temperature, which a captured step reads when it runs.
struct StepValues {
  torch::Tensor rates;  // [2] floats

  torch::Tensor temperature() const { return rates.select(0, 1); }
};

struct AugmentState {
  torch::Tensor images;  // [M, 3, H, W] bytes
  torch::Tensor labels;  // [M] int64
  torch::Tensor order;   // [M] int32: of the epoch
  torch::Tensor clock;   // [2] int64: step of the epoch, epoch
  uint64_t seed = 0;
  int64_t pad = 0;  // random crop of the padded image; 0 without augmentation
  bool flip = false;
  bool augment = false;
  int64_t cutout = 0;                // side of a square left out, whether or not augmented else
  std::vector<float> multiply, add;  // per channel: normalised = byte * multiply + add
};

// Images of a step: `count` of the order from place clock[0] * batch + first on.
struct SampleRange {
  int64_t batch = 0, first = 0, count = 0;
};

struct Sample {
  torch::Tensor images;  // activations
  torch::Tensor labels;
};

// Of a batch and of an epoch.
struct LossState {
  torch::Tensor sums;  // [2] doubles: loss and right answers, added up
  double label_smoothing = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // packed = weight * P(attention, temperature), or its hard max as `relax` says, in the activations' type. For
  // convolutions whose rule is these two.
  virtual void pack_weights(at::ArrayRef<ConvState> convs, const StepValues& values) = 0;
  // From packed's gradients to those of weight and attention, and one step of SGD.
  virtual void update_convs(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) = 0;
  virtual void update_plain(std::vector<PlainState>& states, const StepValues& values,
                            const UpdateOptions& options) = 0;

  // y = relu(norm(x) + residual). Training: by the batch's statistics, which are kept and enter the running ones; else
  // by the running ones.
  virtual torch::Tensor norm(NormState& state, const torch::Tensor& x, const torch::Tensor& residual,
                             bool training) = 0;
  // dy is the sum of one or two. Gives x's gradient and, where there was a residual, its own.
  struct NormGrads {
    torch::Tensor x, residual;
  };
  virtual NormGrads norm_backward(NormState& state, const std::vector<torch::Tensor>& dy, const torch::Tensor& x,
                                  const torch::Tensor& y, bool has_residual) = 0;

  // [N, C, H, W] to the [N, channels] means in 32 bits, and back.
  virtual torch::Tensor global_pool(const torch::Tensor& x, int64_t channels) = 0;
  virtual torch::Tensor global_pool_backward(const torch::Tensor& dy, const torch::Tensor& x) = 0;

  // Over the rows of a matrix.
  virtual torch::Tensor column_sums(const torch::Tensor& x) = 0;

  // The gradient of the sum of the losses over `step_images`, those of the whole step; adds loss and right answers to
  // state.sums.
  virtual torch::Tensor loss(LossState& state, const torch::Tensor& logits, const torch::Tensor& labels,
                             int64_t step_images) = 0;

  // Images of `channels` (padded) channels.
  virtual Sample sample(const AugmentState& state, const SampleRange& range, int64_t channels,
                        torch::ScalarType type) = 0;
  // After a step: the clock goes on, and the rates become those of the next step. tables: [2, steps + 1]; counter: [1]
  // int64, steps done.
  virtual void advance(const AugmentState& state, const torch::Tensor& counter, const torch::Tensor& tables,
                       const StepValues& values) = 0;
};

std::unique_ptr<Ops> reference_ops();
// Null in a build without CUDA.
std::unique_ptr<Ops> cuda_ops();

}  // namespace onetap::fused
