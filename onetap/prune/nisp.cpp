#include "onetap/prune/nisp.h"

#include "onetap/base/fail.h"
#include "onetap/batches/device_batches.h"
#include "onetap/nn/evaluation_scope.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/prune/channel_values.h"
#include "onetap/prune/inf_fs.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace onetap {
namespace {

torch::Tensor channel_means(const torch::Tensor& value) {
  return value.dim() > 2 ? value.mean(at::IntArrayRef{2, 3}) : value;
}

// The network with |weights|, no biases and batch norms that do nothing, in 64 bits: deep sums of magnitudes grow
// beyond 32. On a positive input every value is positive, so ReLUs do nothing either, and the gradient of a value is
// what |weights| carry back to it.
nn::GraphModule magnitude_network(const nn::GraphModule& module) {
  const torch::NoGradGuard no_grad;
  nn::GraphModule network(module->graph());
  std::unordered_map<std::string, torch::Tensor> trained;
  for (auto& [name, tensor] : nn::state_of(*module)) trained[name] = tensor;
  network->to(torch::kFloat64);
  for (auto [name, tensor] : nn::state_of(*network)) {
    const size_t dot = name.rfind('.');
    const std::string what = name.substr(dot + 1);
    const Node& node = network->graph().node(name.substr(0, dot));
    const bool is_norm = node.op == Op::kBatchNorm;
    if (what == "weight") {
      is_norm ? tensor.fill_(1) : tensor.copy_(trained.at(name).abs());
    } else if (what == "running_var") {
      tensor.fill_(1 - node.epsilon);
    } else if (what == "bias" || what == "running_mean") {
      tensor.zero_();
    }
  }
  for (auto& parameter : network->parameters()) parameter.set_requires_grad(false);
  network->eval();
  return network;
}

}  // namespace

const Node& response_node(const Graph& graph) {
  const Node* node = &graph.node(graph.output());
  while (node->op != Op::kConv && node->op != Op::kLinear) {
    if (node->inputs.size() != 1) {
      fail_usage("[prune] expected one last layer with weights in {}, got '{}' ({} inputs)", graph.name(), node->name,
                 node->inputs.size());
    }
    node = &graph.source(*node);
  }
  node = &graph.source(*node);
  while (node->op == Op::kFlatten) node = &graph.source(*node);
  return *node;
}

std::vector<LayerScores> propagate_scores(const nn::GraphModule& module, const torch::Tensor& scores,
                                          const std::vector<std::string>& convs) {
  nn::GraphModule network = magnitude_network(module);
  const std::string response = response_node(network->graph()).name;
  std::map<std::string, torch::Tensor> values;
  network->set_observer([&](const Node& node, const torch::Tensor& value) {
    const bool is_wanted = node.name == response || std::find(convs.begin(), convs.end(), node.name) != convs.end();
    if (!is_wanted) return;
    if (value.requires_grad()) value.retain_grad();
    values[node.name] = value;
  });
  const Shape& image = network->graph().input().shape;
  const torch::Tensor x = torch::ones({1, image[0], image[1], image[2]}, torch::kFloat64).set_requires_grad(true);
  network->forward(x);
  (channel_means(values.at(response)).flatten() * scores.to(torch::kCPU, torch::kFloat64)).sum().backward();
  std::vector<LayerScores> layers;
  for (const std::string& conv : convs) {
    const torch::Tensor& value = values.at(conv);
    // What does not lead to the response has no gradient.
    const torch::Tensor gradient = value.grad().defined() ? value.grad() : torch::zeros_like(value);
    layers.push_back({conv, channel_values(gradient.sum(at::IntArrayRef{0, 2, 3}))});
  }
  return layers;
}

std::optional<std::vector<LayerScores>> score_nisp(nn::GraphModule& module, const Dataset& train,
                                                   const std::vector<std::string>& convs,
                                                   const ImageScoreOptions& options) {
  const std::string response = response_node(module->graph()).name;
  std::vector<torch::Tensor> features;
  {
    const torch::NoGradGuard no_grad;
    const nn::EvaluationScope scope(module);
    StreamOptions stream = options.stream;
    stream.augment.kind = Augment::kNone;
    stream.augment.flip = false;
    stream.augment.cutout = 0;
    DeviceBatches batches(train, stream, options.device);
    module->set_observer([&](const Node& node, const torch::Tensor& value) {
      if (node.name == response) features.push_back(channel_means(value).to(torch::kCPU));
    });
    struct Unobserved {
      nn::GraphModule& module;
      ~Unobserved() { module->set_observer({}); }
    } unobserved{module};
    Batch batch;
    int64_t images = 0;
    while ((options.images == 0 || images < options.images) && batches.next(batch)) {
      module->forward(batch.images);
      images += batch.labels.size(0);
      if (options.progress && !options.progress("responses", images)) return std::nullopt;
    }
    if (batches.stopped()) return std::nullopt;
  }
  return propagate_scores(module, inf_fs(torch::cat(features, 0)), convs);
}

}  // namespace onetap
