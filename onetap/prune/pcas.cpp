#include "onetap/prune/pcas.h"

#include "onetap/base/fail.h"
#include "onetap/batches/device_batches.h"
#include "onetap/graph/uses.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/prune/channel_values.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace onetap {
namespace {

// From a value [N, C, H, W] to factors [N, C].
class BranchImpl : public torch::nn::Module {
 public:
  BranchImpl(int64_t channels, int64_t hidden)
      : narrow_(register_module("narrow", torch::nn::Linear(channels, hidden))),
        widen_(register_module("widen", torch::nn::Linear(hidden, channels))) {}

  torch::Tensor forward(const torch::Tensor& value) {
    const torch::Tensor means = value.mean(at::IntArrayRef{2, 3});
    return torch::sigmoid(widen_->forward(torch::relu(narrow_->forward(means))));
  }

 private:
  torch::nn::Linear narrow_, widen_;
};
TORCH_MODULE(Branch);

// The branches of a network, which scale its values while this lives; its parameters have no gradients then.
class Branches {
 public:
  Branches(nn::GraphModule& module, const std::vector<std::string>& convs, const PcasOptions& options)
      : module_(module), scope_(module) {
    constexpr int64_t kFewest = 4;
    torch::manual_seed(options.seed);
    for (const std::string& conv : convs) {
      const Node& node = gated_node(module->graph(), conv);
      const int64_t channels = node.shape[0];
      Branch branch(channels, std::max(kFewest, channels / options.reduce));
      branch->to(options.score.device);
      for (auto& parameter : branch->parameters()) parameters_.push_back(parameter);
      branches_.emplace(node.name, Entry{branch, torch::zeros({channels}, torch::kFloat64)});
    }
    for (auto& parameter : module->parameters()) {
      if (parameter.requires_grad()) frozen_.push_back(parameter.set_requires_grad(false));
    }
    module->set_editor([this](const Node& node, const torch::Tensor& value) { return scaled(node, value); });
  }
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;
  ~Branches() {
    module_->set_editor({});
    for (auto& parameter : frozen_) parameter.set_requires_grad(true);
  }

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }

  // Adds up factors from now on.
  void start_sums() { sums_ = true; }
  std::vector<double> mean(const std::string& conv, int64_t images) const {
    return channel_values(branches_.at(gated_node(module_->graph(), conv).name).sum / static_cast<double>(images));
  }

 private:
  struct Entry {
    Branch branch;
    torch::Tensor sum;
  };

  torch::Tensor scaled(const Node& node, const torch::Tensor& value) {
    const auto found = branches_.find(node.name);
    if (found == branches_.end()) return value;
    const torch::Tensor factors = found->second.branch->forward(value);
    if (sums_) found->second.sum += factors.sum(0).to(torch::kCPU, torch::kFloat64);
    return value * factors.unsqueeze(2).unsqueeze(3);
  }

  nn::GraphModule module_;
  nn::EvaluationScope scope_;
  std::map<std::string, Entry> branches_;  // by the node that is scaled
  std::vector<torch::Tensor> parameters_, frozen_;
  bool sums_ = false;
};

// False if it was stopped.
bool train_branches(nn::GraphModule& module, const Branches& branches, const Dataset& train,
                    const PcasOptions& options) {
  torch::optim::Adam adam(branches.parameters(), torch::optim::AdamOptions(options.lr));
  int64_t images = 0;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    StreamOptions stream = options.score.stream;
    stream.epoch = epoch;
    DeviceBatches batches(train, stream, options.score.device);
    Batch batch;
    while (batches.next(batch)) {
      const torch::Tensor loss = torch::nn::functional::cross_entropy(module->forward(batch.images), batch.labels);
      if (!std::isfinite(loss.item<double>())) fail("[prune] the loss of the attention branches is not finite");
      adam.zero_grad();
      loss.backward();
      adam.step();
      images += batch.labels.size(0);
      if (options.score.progress && !options.score.progress("attention", images)) return false;
    }
    if (batches.stopped()) return false;
  }
  return true;
}

}  // namespace

const Node& gated_node(const Graph& graph, const std::string& conv) {
  const Uses uses(graph);
  const Node* node = &graph.node(conv);
  for (const Node* next = uses.only_reader(*node); next != nullptr; next = uses.only_reader(*node)) {
    if (next->op != Op::kBatchNorm && next->op != Op::kRelu) break;
    node = next;
  }
  return *node;
}

std::optional<std::vector<LayerScores>> score_pcas(nn::GraphModule& module, const Dataset& train,
                                                   const std::vector<std::string>& convs, const PcasOptions& options) {
  Branches branches(module, convs, options);
  if (!train_branches(module, branches, train, options)) return std::nullopt;
  const torch::NoGradGuard no_grad;
  branches.start_sums();
  const int64_t wanted = options.score.images;
  DeviceBatches batches(train, options.score.stream, options.score.device);
  Batch batch;
  int64_t images = 0;
  while ((wanted == 0 || images < wanted) && batches.next(batch)) {
    module->forward(batch.images);
    images += batch.labels.size(0);
    if (options.score.progress && !options.score.progress("statistics", images)) return std::nullopt;
  }
  if (batches.stopped()) return std::nullopt;
  std::vector<LayerScores> scores;
  for (const std::string& conv : convs) scores.push_back({conv, branches.mean(conv, images)});
  return scores;
}

}  // namespace onetap
