// A LibTorch module that executes a Graph.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"
#include "onetap/nn/trained_conv.h"

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace onetap::nn {

// What a forward pass in training takes from outside, in place of what layers have themselves.
struct ForwardInputs {
  torch::Tensor temperature;  // one number, on the device; undefined: the layers' own
  // Of convolutions, by node: what they multiply by. The caller computes it from the parameters, and has its gradients.
  std::unordered_map<std::string, torch::Tensor> weights;
};

enum class WeightInit {
  kDefault,  // LibTorch's own: uniform, +-1/sqrt(fan in)
  kFanOut,   // Kaiming normal over fan-out
};

// kUsage if a module of it cannot be made: it has ops of frozen networks, or more weights than any machine holds.
void check_trainable(const Graph& graph);

class GraphModuleImpl : public torch::nn::Module {
 public:
  // Parameters are called as the nodes are, with dots: "layer1.0.conv1.weight".
  explicit GraphModuleImpl(Graph graph, WeightInit init = WeightInit::kDefault);
  ~GraphModuleImpl() override;

  // x: [N, C, H, W] to [N, classes].
  torch::Tensor forward(const torch::Tensor& x);
  torch::Tensor forward_with(const torch::Tensor& x, const ForwardInputs& inputs);

  // Every convolution and linear layer with a method other than `conv`, with its node's name, in order.
  struct TrainedLayer {
    std::string name;
    std::shared_ptr<TrainedConv> layer;
  };
  const std::vector<TrainedLayer>& trained_layers() const { return trained_layers_; }
  // Those that are trained in another form than they are frozen in.
  std::vector<TrainedLayer> soft_layers() const;
  void set_temperature(double temperature);
  void set_mode(AttentionMode mode);

  // Those of every TrainedConv; settle() gives the names of the module's parameters.
  void after_step();
  std::vector<std::string> settle();
  // `dense` are the layers whose weights are those of a dense layer. In evaluation the network then computes what the
  // dense one did, where its methods allow it.
  void weights_imported(const std::set<std::string>& dense);

  // These batch norms go by their running statistics in training too, and leave them as they are.
  void fix_norms(std::set<std::string> names) { fixed_norms_ = std::move(names); }
  bool has_fixed_norm(const std::string& name) const { return fixed_norms_.count(name) > 0; }

  // How batch norms compute in training, in place of each by its own batch.
  using TrainingNorm = std::function<torch::Tensor(torch::nn::BatchNorm2dImpl&, const torch::Tensor&)>;
  void set_training_norm(TrainingNorm norm) { training_norm_ = std::move(norm); }

  // Sees what every node gives in a forward pass, as soon as it is there.
  using Observer = std::function<void(const Node&, const torch::Tensor&)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // Puts what it returns in place of what a node gave, before anything reads that; the observer sees it so.
  using Editor = std::function<torch::Tensor(const Node&, const torch::Tensor&)>;
  void set_editor(Editor editor) { editor_ = std::move(editor); }

  // Likewise of the weight that a convolution or a linear layer multiplies by, as its method and mode have it.
  using WeightEditor = std::function<torch::Tensor(const Node&, const torch::Tensor&)>;
  void set_weight_editor(WeightEditor editor);
  bool edits_weights() const { return static_cast<bool>(weight_editor_); }

  // Layers with a soft form are trained in their hard one from now on.
  void train_hard();
  bool trains_hard() const { return trains_hard_; }

  const Graph& graph() const { return graph_; }

 private:
  struct Step;  // one node, ready to run
  class Giving;
  using Values = std::vector<torch::Tensor>;

  void build(WeightInit init);
  // Creates the containers that a dotted name needs and registers `layer` in the innermost.
  template <typename Layer>
  Layer place(const std::string& name, Layer layer);
  void add_conv(const Node& node, Step& step, WeightInit init);
  const torch::Tensor* given_weight(const std::string& node) const;  // null: none
  // Of a layer without a method.
  torch::Tensor weight_in_use(const Node& node, const torch::Tensor& weight) const;
  // By its method; gives the weight.
  torch::Tensor add_trained(const Node& node, Step& step);

  Graph graph_;
  std::vector<Step> steps_;
  size_t output_ = 0;
  std::vector<TrainedLayer> trained_layers_;
  std::unordered_map<std::string, torch::nn::BatchNorm2d> norms_;  // by node
  std::set<std::string> fixed_norms_;
  TrainingNorm training_norm_;
  Observer observer_;
  Editor editor_;
  WeightEditor weight_editor_;
  bool trains_hard_ = false;
  const ForwardInputs* given_ = nullptr;  // of the forward pass under way
};
TORCH_MODULE(GraphModule);

// Sets the mode of layers for a scope; layers go back to soft afterwards.
class ModeGuard {
 public:
  ModeGuard(GraphModule module, AttentionMode mode) : module_(std::move(module)) { module_->set_mode(mode); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;
  ~ModeGuard() { module_->set_mode(AttentionMode::kSoft); }

 private:
  GraphModule module_;
};

}  // namespace onetap::nn
