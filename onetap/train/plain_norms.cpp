#include "onetap/train/plain_norms.h"

#include "onetap/graph/batch_norm.h"

#include <unordered_map>

namespace onetap {
namespace {

// Of every channel, over batches; sums of squared deviations do not lose what sums of squares would.
class Moments {
 public:
  void add(const torch::Tensor& value) {
    const auto [variance, mean] = torch::var_mean(value, {0, 2, 3}, /*unbiased=*/false);
    const double count = static_cast<double>(value.numel() / value.size(1)), all = count_ + count;
    const auto batch_mean = mean.to(torch::kFloat64), batch_deviations = variance.to(torch::kFloat64) * count;
    if (count_ == 0) {
      mean_ = batch_mean;
      deviations_ = batch_deviations;
    } else {
      const auto step = batch_mean - mean_;
      mean_ = mean_ + step * (count / all);
      deviations_ = deviations_ + batch_deviations + step * step * (count_ * count / all);
    }
    count_ = all;
  }

  bool empty() const { return count_ == 0; }
  torch::Tensor mean() const { return mean_; }
  torch::Tensor variance() const { return deviations_ / count_; }

 private:
  double count_ = 0;
  torch::Tensor mean_, deviations_;
};

// Layers that drop or round weights pass on values far smaller than those of the dense network; a batch norm that
// learned those would keep them so small.
class DenseWeights {
 public:
  explicit DenseWeights(const nn::GraphModule& module) : layers_(module->trained_layers()) {
    for (const auto& [name, layer] : layers_) {
      layer->set_weight_editor([&layer = *layer](const torch::Tensor& effective) { return layer.as_dense(effective); });
    }
  }
  ~DenseWeights() {
    for (const auto& trained : layers_) trained.layer->set_weight_editor({});
  }
  DenseWeights(const DenseWeights&) = delete;
  DenseWeights& operator=(const DenseWeights&) = delete;

 private:
  std::vector<nn::GraphModuleImpl::TrainedLayer> layers_;
};

}  // namespace

std::vector<std::string> plain_norms(const nn::GraphModule& module) {
  const auto buffers = module->named_buffers();
  std::vector<std::string> found;
  for (const Node& node : module->graph().nodes()) {
    if (node.op != Op::kBatchNorm || module->has_fixed_norm(node.name)) continue;
    if ((buffers[node.name + ".running_var"] == kPlainNormVariance).all().item<bool>()) found.push_back(node.name);
  }
  return found;
}

void give_statistics(nn::GraphModule& module, const std::vector<std::string>& norms,
                     const std::function<bool()>& forward) {
  const torch::NoGradGuard no_grad;
  std::unordered_map<std::string, Moments> moments;  // of a value that a norm reads
  for (const std::string& name : norms) moments[module->graph().node(name).inputs[0]];
  {
    struct Observed {
      nn::GraphModule module;
      ~Observed() { module->set_observer({}); }
    };
    const Observed observed{module};
    const DenseWeights dense(module);
    module->set_observer([&](const Node& node, const torch::Tensor& value) {
      if (const auto found = moments.find(node.name); found != moments.end()) found->second.add(value);
    });
    while (forward()) continue;
  }
  const auto parameters = module->named_parameters(), buffers = module->named_buffers();
  for (const std::string& name : norms) {
    const Node& node = module->graph().node(name);
    const Moments& read = moments.at(node.inputs[0]);
    if (read.empty()) continue;
    const auto in_double = [](const torch::Tensor& tensor) { return tensor.to(torch::kFloat64); };
    torch::Tensor weight = parameters[name + ".weight"], bias = parameters[name + ".bias"];
    torch::Tensor mean = buffers[name + ".running_mean"], variance = buffers[name + ".running_var"];
    // weight (x - mean) / sqrt(variance + epsilon) + bias, with the new four as with the old.
    const auto scale = in_double(weight) / torch::sqrt(in_double(variance) + node.epsilon);
    bias.copy_(in_double(bias) + scale * (read.mean() - in_double(mean)));
    weight.copy_(scale * torch::sqrt(read.variance() + node.epsilon));
    mean.copy_(read.mean());
    variance.copy_(read.variance());
  }
}

}  // namespace onetap
