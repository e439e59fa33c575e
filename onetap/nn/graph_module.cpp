#include "onetap/nn/graph_module.h"

#include "onetap/base/fail.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/op.h"
#include "onetap/graph/uses.h"
#include "onetap/nn/active_shift.h"
#include "onetap/nn/batch_norm.h"
#include "onetap/nn/channel_shift.h"
#include "onetap/nn/convolve.h"

#include <functional>
#include <unordered_map>

namespace onetap::nn {

struct GraphModuleImpl::Step {
  std::vector<size_t> inputs;
  std::vector<size_t> last_uses;  // values no later step needs
  std::function<torch::Tensor(const std::vector<torch::Tensor>&)> run;
};

namespace {

constexpr int64_t kMaxParameters = int64_t{1} << 33;

at::IntArrayRef pair(const Extent2& extent) {
  return at::IntArrayRef(&extent.h, 2);
}

// One factor per channel is repeated over the pixels.
torch::Tensor product(const torch::Tensor& x, const torch::Tensor& factor) {
  return x * (factor.dim() < x.dim() ? factor.unsqueeze(-1).unsqueeze(-1) : factor);
}

torch::Tensor subsample(const torch::Tensor& x, const Node& node) {
  const int64_t extra = node.out - x.size(1), front = extra / 2;
  using torch::indexing::Slice;
  const auto thin = x.index({Slice(), Slice(), Slice(0, torch::indexing::None, node.stride.h),
                             Slice(0, torch::indexing::None, node.stride.w)});
  return torch::constant_pad_nd(thin, {0, 0, 0, 0, front, extra - front}, 0);
}

torch::Tensor fixed_norm(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x) {
  return torch::batch_norm(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, /*training=*/false,
                           /*momentum=*/0.0, norm.options.eps(), at::globalContext().userEnabledCuDNN());
}

// Of a batch norm's input, per channel, so that the variance stays a hundred times the number that is added to it, or
// as it is where it is smaller already: else that number would matter more than before.
torch::Tensor least_factor(const torch::nn::BatchNorm2dImpl& norm) {
  const double least_variance = 100 * norm.options.eps();
  return (least_variance / norm.running_var.clamp_min(least_variance)).sqrt();
}

// Makes of the input times `factor` what the batch norm made of the input.
void take_back(const torch::Tensor& factor, torch::nn::BatchNorm2dImpl& norm) {
  const double eps = norm.options.eps();
  norm.running_mean.mul_(factor);
  norm.running_var.copy_((norm.running_var + eps) * factor.square() - eps);
}

// The ops without parameters.
std::function<torch::Tensor(const std::vector<torch::Tensor>&)> plain_op(const Node& node) {
  using Inputs = std::vector<torch::Tensor>;
  switch (node.op) {
    case Op::kRelu:
      return [](const Inputs& in) { return torch::relu(in[0]); };
    case Op::kRelu6:
      return [](const Inputs& in) { return torch::clamp(in[0], 0, 6); };
    case Op::kSigmoid:
      return [](const Inputs& in) { return torch::sigmoid(in[0]); };
    case Op::kHardSigmoid:
      return [](const Inputs& in) { return torch::hardsigmoid(in[0]); };
    case Op::kHardSwish:
      return [](const Inputs& in) { return torch::hardswish(in[0]); };
    case Op::kSilu:
      return [](const Inputs& in) { return torch::silu(in[0]); };
    case Op::kMul:
      return [](const Inputs& in) { return product(in[0], in[1]); };
    case Op::kPad:
      return [node](const Inputs& in) {
        return torch::constant_pad_nd(in[0], {node.sides[1], node.sides[3], node.sides[0], node.sides[2]},
                                      pad_value(node));
      };
    case Op::kAdd:
      return [](const Inputs& in) {
        torch::Tensor sum = in[0] + in[1];
        for (size_t i = 2; i < in.size(); ++i) sum = sum + in[i];
        return sum;
      };
    case Op::kConcat:
      return [](const Inputs& in) { return torch::cat(in, 1); };
    case Op::kAvgPool:
      return [node](const Inputs& in) {
        return torch::avg_pool2d(in[0], pair(node.kernel), pair(node.stride), pair(node.padding));
      };
    case Op::kMaxPool:
      return [node](const Inputs& in) {
        return torch::max_pool2d(in[0], pair(node.kernel), pair(node.stride), pair(node.padding));
      };
    case Op::kGlobalAvgPool:
      return [](const Inputs& in) { return in[0].mean(at::IntArrayRef{2, 3}); };
    case Op::kSubsample:
      return [node](const Inputs& in) { return subsample(in[0], node); };
    case Op::kFlatten:
      return [](const Inputs& in) { return in[0].flatten(1); };
    case Op::kShift:
      return [shift = std::make_shared<FixedShift>(node)](const Inputs& in) { return shift->forward(in[0]); };
    default:
      fail("[nn] {}: op without an executor", node.name);
  }
}

}  // namespace

void check_trainable(const Graph& graph) {
  int64_t total = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kTapConv || node.op == Op::kAffine) {
      fail_usage("[nn] {}: {} belongs to a frozen network, which cannot be trained", node.name, op_info(node.op).name);
    }
    if (node.op == Op::kConv) total += node.out * (in_channels(graph, node) / node.groups) * node.kernel.area();
    if (node.op == Op::kLinear) total += node.out * in_channels(graph, node);
    if (total > kMaxParameters) fail_usage("[nn] expected at most 2^33 weights, got more ({})", graph.name());
  }
}

template <typename Layer>
Layer GraphModuleImpl::place(const std::string& name, Layer layer) {
  torch::nn::Module* parent = this;
  size_t start = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', start)) {
    const std::string part = name.substr(start, dot - start);
    const auto children = parent->named_children();
    if (const auto* child = children.find(part)) {
      parent = child->get();
    } else {
      parent = parent->register_module(part, std::make_shared<torch::nn::Module>()).get();
    }
    start = dot + 1;
  }
  return parent->register_module(name.substr(start), std::move(layer));
}

torch::Tensor GraphModuleImpl::add_trained(const Node& node, Step& step) {
  auto layer = place(node.name, make_trained_conv(node, in_channels(graph_, node)));
  trained_layers_.push_back({node.name, layer});
  step.run = [layer](const Values& values) { return layer->forward(values[0]); };
  return layer->weight;
}

void GraphModuleImpl::add_conv(const Node& node, Step& step, WeightInit init) {
  const int64_t in = in_channels(graph_, node);
  torch::Tensor weight;
  if (!node.method.is_dense()) {
    weight = add_trained(node, step);
  } else {
    const torch::ExpandingArray<2> kernel({node.kernel.h, node.kernel.w});
    torch::nn::Conv2dOptions options(in, node.out, kernel);
    options.stride({node.stride.h, node.stride.w})
        .padding(torch::ExpandingArray<2>({node.padding.h, node.padding.w}))
        .dilation({node.dilation.h, node.dilation.w})
        .groups(node.groups)
        .bias(node.bias);
    auto conv = place(node.name, torch::nn::Conv2d(options));
    weight = conv->weight;
    step.run = [this, conv, node](const Values& values) {
      return convolve(values[0], weight_in_use(node, conv->weight), conv->bias, node);
    };
  }
  if (init == WeightInit::kFanOut) {
    torch::nn::init::kaiming_normal_(weight, 0.0, torch::kFanOut, torch::kReLU);
  }
}

GraphModuleImpl::GraphModuleImpl(Graph graph, WeightInit init) : graph_(std::move(graph)) {
  check_trainable(graph_);
  build(init);
}

GraphModuleImpl::~GraphModuleImpl() = default;

void GraphModuleImpl::build(WeightInit init) {
  std::unordered_map<std::string, size_t> index;
  for (const Node& node : graph_.nodes()) {
    Step step;
    for (const std::string& input : node.inputs) step.inputs.push_back(index.at(input));
    index[node.name] = steps_.size();
    switch (node.op) {
      case Op::kInput:
        break;  // the value comes from the caller
      case Op::kConv:
        add_conv(node, step, init);
        break;
      case Op::kBatchNorm: {
        const auto options =
            torch::nn::BatchNorm2dOptions(node.shape[0]).eps(node.epsilon).momentum(kBatchNormMomentum);
        auto bn = place(node.name, torch::nn::BatchNorm2d(options));
        norms_.emplace(node.name, bn);
        step.run = [this, bn, name = node.name](const Values& values) mutable {
          if (!is_training()) return bn->forward(values[0]);
          if (fixed_norms_.count(name) > 0) return fixed_norm(*bn, values[0]);
          return training_norm_ ? training_norm_(*bn, values[0]) : training_norm(*bn, values[0]);
        };
        break;
      }
      case Op::kActiveShift: {
        auto shift = place(node.name, ActiveShift2d(node.shape[0], node.stride));
        step.run = [shift](const Values& values) mutable { return shift->forward(values[0]); };
        break;
      }
      case Op::kLinear: {
        if (!node.method.is_dense()) {
          add_trained(node, step);
          break;
        }
        auto fc =
            place(node.name,
                  torch::nn::Linear(torch::nn::LinearOptions(in_channels(graph_, node), node.out).bias(node.bias)));
        step.run = [this, fc, node](const Values& values) {
          return torch::linear(values[0], weight_in_use(node, fc->weight), fc->bias);
        };
        break;
      }
      default:
        step.run = plain_op(node);
        break;
    }
    steps_.push_back(std::move(step));
  }
  output_ = index.at(graph_.output());

  // A value is dropped after its last use: in evaluation the memory is that of the live ones alone.
  const Uses uses(graph_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Node* done : uses.ending_at(i)) steps_[i].last_uses.push_back(uses.index_of(done->name));
  }
}

torch::Tensor GraphModuleImpl::forward(const torch::Tensor& x) {
  Values values(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (!step.run) {
      values[i] = x;
    } else {
      Values inputs;
      inputs.reserve(step.inputs.size());
      for (const size_t input : step.inputs) inputs.push_back(values[input]);
      for (const size_t done : step.last_uses) values[done].reset();
      values[i] = step.run(inputs);
    }
    if (editor_) values[i] = editor_(graph_.nodes()[i], values[i]);
    if (observer_) observer_(graph_.nodes()[i], values[i]);
  }
  return values[output_];
}

const torch::Tensor* GraphModuleImpl::given_weight(const std::string& node) const {
  if (given_ == nullptr) return nullptr;
  const auto found = given_->weights.find(node);
  return found == given_->weights.end() ? nullptr : &found->second;
}

torch::Tensor GraphModuleImpl::weight_in_use(const Node& node, const torch::Tensor& weight) const {
  const torch::Tensor* given = given_weight(node.name);
  const torch::Tensor& used = given != nullptr ? *given : weight;
  return weight_editor_ ? weight_editor_(node, used) : used;
}

void GraphModuleImpl::set_weight_editor(WeightEditor editor) {
  weight_editor_ = std::move(editor);
  for (const TrainedLayer& trained : trained_layers_) {
    if (!weight_editor_) {
      trained.layer->set_weight_editor({});
      continue;
    }
    trained.layer->set_weight_editor([this, &node = graph_.node(trained.name)](const torch::Tensor& weight) {
      return weight_editor_(node, weight);
    });
  }
}

void GraphModuleImpl::train_hard() {
  trains_hard_ = true;
  for (const TrainedLayer& trained : soft_layers()) trained.layer->train_hard();
}

// The inputs are the layers' while this lives.
class GraphModuleImpl::Giving {
 public:
  Giving(GraphModuleImpl& module, const ForwardInputs& inputs) : module_(module) {
    module_.given_ = &inputs;
    for (const TrainedLayer& trained : module_.trained_layers_) {
      const torch::Tensor* weight = module_.given_weight(trained.name);
      trained.layer->set_given({inputs.temperature, weight != nullptr ? *weight : torch::Tensor()});
    }
  }
  Giving(const Giving&) = delete;
  Giving& operator=(const Giving&) = delete;
  ~Giving() {
    module_.given_ = nullptr;
    for (const TrainedLayer& trained : module_.trained_layers_) trained.layer->set_given({});
  }

 private:
  GraphModuleImpl& module_;
};

torch::Tensor GraphModuleImpl::forward_with(const torch::Tensor& x, const ForwardInputs& inputs) {
  const Giving giving(*this, inputs);
  return forward(x);
}

std::vector<GraphModuleImpl::TrainedLayer> GraphModuleImpl::soft_layers() const {
  std::vector<TrainedLayer> soft;
  for (const TrainedLayer& trained : trained_layers_) {
    if (graph_.node(trained.name).method.info().has_soft_form) soft.push_back(trained);
  }
  return soft;
}

void GraphModuleImpl::set_temperature(double temperature) {
  for (const TrainedLayer& trained : trained_layers_) trained.layer->set_temperature(temperature);
}

void GraphModuleImpl::after_step() {
  for (const TrainedLayer& trained : trained_layers_) trained.layer->after_step();
}

std::vector<std::string> GraphModuleImpl::settle() {
  std::vector<std::string> names;
  for (const TrainedLayer& trained : trained_layers_) {
    for (const std::string& own : trained.layer->settle()) names.push_back(trained.name + "." + own);
  }
  return names;
}

void GraphModuleImpl::weights_imported(const std::set<std::string>& dense) {
  const torch::NoGradGuard no_grad;
  const Uses uses(graph_);
  for (const TrainedLayer& trained : trained_layers_) {
    const Node* reader = uses.only_reader(graph_.node(trained.name));
    const bool has_norm = reader != nullptr && reader->op == Op::kBatchNorm;
    ImportedWeights imported;
    imported.dense = dense.count(trained.name) > 0;
    if (has_norm) imported.least_factor = least_factor(*norms_.at(reader->name));
    const auto factor = trained.layer->weights_imported(imported);
    if (factor.defined() && has_norm) take_back(factor, *norms_.at(reader->name));
  }
}

void GraphModuleImpl::set_mode(AttentionMode mode) {
  for (const TrainedLayer& trained : trained_layers_) trained.layer->set_mode(mode);
}

}  // namespace onetap::nn
