// A convolution (or a linear layer) as a training method has it: what the training loop, tests, records, freezing and
// the fused engine know of it. The layer of a node is made by the factory that its method's name stands for.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onetap::nn {

enum class AttentionMode {
  kSoft,   // as it is trained, by the temperature
  kHard,   // as it is frozen
  kRound,  // as the authors' code finishes it: ones where P > 0.5
};

// What is left of a convolution once it is trained.
struct FrozenConv {
  torch::Tensor weight;  // as the layer's; with codes [out, in / groups, taps]
  torch::Tensor codes;   // int64, [output blocks, input blocks, taps] as TapLayout has them; undefined: every position
  torch::Tensor bias;    // undefined: none
};

// Which positions a layer would keep, for records of a run.
struct TapChoice {
  torch::Tensor p;          // [output blocks, input blocks, S]
  torch::Tensor positions;  // [output blocks, input blocks, taps]
};

// Weights from elsewhere that were copied into a layer.
struct ImportedWeights {
  // Those of a dense layer: what the method has beside them (attention logits) was not there.
  bool dense = false;
  // [out]: the layer may multiply its results by factors from these to 1, for the batch norm behind it takes them back.
  // Undefined: it may not.
  torch::Tensor least_factor = {};
};

class TrainedConv : public torch::nn::Module {
 public:
  // [out, in / groups, kernel...]; of a linear layer [out, in].
  torch::Tensor weight;

  virtual torch::Tensor forward(const torch::Tensor& x) = 0;

  double temperature() const { return temperature_; }
  void set_temperature(double temperature);
  AttentionMode mode() const { return mode_; }
  void set_mode(AttentionMode mode) { mode_ = mode; }

  // In mode kSoft, what effective_weight() takes in place of its own: the temperature as a tensor of one number on the
  // device of the parameters, or the weight itself, by a caller that computed it from them. Undefined: its own.
  struct Given {
    torch::Tensor temperature, weight;
  };
  void set_given(Given given) { given_ = std::move(given); }

  // Mode kSoft, as it is trained, becomes that of kHard: the positions stay, and the kept weights are trained.
  void train_hard() { trains_hard_ = true; }

  // Puts what it returns in place of the effective weight, in every mode.
  using WeightEditor = std::function<torch::Tensor(const torch::Tensor&)>;
  void set_weight_editor(WeightEditor editor) { editor_ = std::move(editor); }

  // What the convolution multiplies by in the present mode, at the present temperature; shaped as `weight`.
  torch::Tensor effective_weight() const;

  // The same in mode kSoft at a temperature that is a tensor of one number, on the device of the parameters. Its
  // gradients are those of the parameters. It must not wait for the device: CUDA graphs capture it.
  virtual torch::Tensor soft_weight(const torch::Tensor& temperature) const = 0;
  // In mode kHard or kRound.
  virtual torch::Tensor finished_weight(AttentionMode mode) const = 0;
  // Its node becomes the op that the table of methods says.
  virtual FrozenConv freeze() const = 0;
  virtual std::optional<TapChoice> describe() const { return std::nullopt; }

  // Training starts from these weights, at the present temperature. A layer that scales its weights while it is trained
  // takes that back where they are dense, so that it starts as the dense layer. Gives the factors [out] of its results;
  // undefined: 1. kData if training cannot start from them.
  virtual torch::Tensor weights_imported(const ImportedWeights&) { return {}; }
  // What the dense layer that it started from multiplies by, once weights_imported() was called; `effective`: what this
  // one does now.
  virtual torch::Tensor as_dense(const torch::Tensor& /*effective*/) const { return weight; }
  // After every step of the optimiser. It must not wait for the device: CUDA graphs capture it.
  virtual void after_step() {}
  // The positions that are kept now are final: the logits that chose them become ones and zeros, so that no gradient is
  // left, and weight decay changes no order. Gives the names of the parameters that it set, whose momenta the caller
  // drops.
  virtual std::vector<std::string> settle() { return {}; }

 private:
  torch::Tensor unedited_weight() const;

  double temperature_ = 1.0;
  Given given_;
  bool trains_hard_ = false;
  WeightEditor editor_;
  AttentionMode mode_ = AttentionMode::kSoft;
};

// The layer of a node: a convolution with its window, or a linear layer. `weight`, and `bias` if the node has one, are
// drawn as torch::nn::Conv2d and Linear do. A method that derives from it says how its weights are made and frozen.
class TrainedConv2d : public TrainedConv {
 public:
  torch::Tensor bias;  // may be undefined

  TrainedConv2d(const Node& node, int64_t in_channels);
  torch::Tensor forward(const torch::Tensor& x) override;
  void pretty_print(std::ostream& stream) const override;

 protected:
  const Node node_;
};

using ConvFactory = std::function<std::shared_ptr<TrainedConv>(const Node& node, int64_t in_channels)>;

// Names the layer of a method that the table has. kUsage if there is one.
void add_conv_factory(const std::string& method, ConvFactory factory);

// The layer of a node whose method is not `conv`. kUsage if none is known.
std::shared_ptr<TrainedConv> make_trained_conv(const Node& node, int64_t in_channels);

}  // namespace onetap::nn
