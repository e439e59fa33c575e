#include "onetap/fused/weight_rule.h"

#include "onetap/fused/kernel_limits.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>

namespace onetap::fused {
namespace {

class KernelRule : public WeightRule {
 public:
  explicit KernelRule(std::shared_ptr<Ops> ops) : ops_(std::move(ops)) {}

  void pack(at::ArrayRef<ConvState> convs, const StepValues& values) override { ops_->pack_weights(convs, values); }
  void update(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) override {
    ops_->update_convs(convs, values, options);
  }

 private:
  std::shared_ptr<Ops> ops_;
};

// The temperature stays on the device and nothing is asked back, so a step with it can be captured.
class AutogradRule : public WeightRule {
 public:
  explicit AutogradRule(std::shared_ptr<Ops> ops) : ops_(std::move(ops)) {}

  void pack(at::ArrayRef<ConvState> convs, const StepValues& values) override {
    const torch::NoGradGuard no_grad;
    for (const ConvState& conv : convs) {
      conv.real_part(conv.packed).copy_(conv.layer->soft_weight(values.temperature()));
    }
  }

  void update(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) override {
    const torch::AutoGradMode with_grad(true);  // also where backward() calls it
    std::vector<PlainState> states;
    for (const ConvState& conv : convs) {
      const auto parameters = conv.layer->parameters();
      const auto names = conv.layer->named_parameters().keys();
      const auto grads = torch::autograd::grad({conv.layer->soft_weight(values.temperature())}, parameters,
                                               {conv.real_part(conv.grad).to(torch::kFloat32)}, /*retain_graph=*/{},
                                               /*create_graph=*/false, /*allow_unused=*/true);
      for (size_t i = 0; i < parameters.size(); ++i) {
        // As the plain step does: one that took no part stays as it is.
        if (!grads[i].defined()) continue;
        const double decay = names[i] == "attention" || names[i] == "keep" ? options.logit_decay : 1;
        states.push_back({parameters[i].detach(), conv.momenta[i], grads[i], {1, decay, false}});
      }
    }
    ops_->update_plain(states, values, options);
    for (const ConvState& conv : convs) conv.layer->after_step();
  }

 private:
  std::shared_ptr<Ops> ops_;
};

// Calls act(rule, convs) for every stretch of convolutions with one rule.
template <typename Act>
void by_rule(at::ArrayRef<ConvState> convs, const Act& act) {
  for (size_t first = 0, end; first < convs.size(); first = end) {
    end = first + 1;
    while (end < convs.size() && convs[end].rule == convs[first].rule) ++end;
    act(*convs[first].rule, convs.slice(first, end - first));
  }
}

}  // namespace

bool has_kernel_area(int64_t area) {
  return area == 1 || area == 9 || area == 25;
}

bool has_depthwise_kernel(Extent2 kernel) {
  return kernel.h == kernel.w && (kernel.h == 3 || kernel.h == 5);
}

bool has_kernels(const Node& node, const TapLayout& layout) {
  if (!has_kernel_area(node.kernel.area())) return false;
  if (node.method.is_dense()) return true;
  return node.method.name() == "sal" && layout.taps == 1 && layout.share_inputs <= kMostSharedInputs &&
         !layout.may_be_empty;
}

WeightRules::WeightRules(std::shared_ptr<Ops> ops)
    : kernels_(std::make_unique<KernelRule>(ops)), autograd_(std::make_unique<AutogradRule>(ops)) {}

ConvState WeightRules::make(const nn::GraphModule& module, const Node& node, const TensorByName& tensor,
                            const TensorByName& momentum) const {
  ConvState conv;
  conv.weight = tensor(node.name + ".weight");
  conv.weight_momentum = momentum(node.name + ".weight");
  for (const auto& trained : module->trained_layers()) {
    if (trained.name == node.name) conv.layer = trained.layer;
  }
  choose(conv, node, tensor, momentum);
  return conv;
}

ConvState WeightRules::make_conv(const nn::GraphModule& module, const Node& node, const TensorByName& tensor,
                                 const TensorByName& momentum, const PackedForm& form) const {
  ConvState conv = make(module, node, tensor, momentum);
  std::vector<int64_t> sizes = conv.weight.sizes().vec();
  if (form.padded != nullptr) std::transform(sizes.begin(), sizes.begin() + 2, sizes.begin(), form.padded);
  conv.packed =
      torch::zeros(sizes, conv.weight.options().dtype(form.type)).contiguous(torch::MemoryFormat::ChannelsLast);
  return conv;
}

void WeightRules::choose(ConvState& conv, const Node& node, const TensorByName& tensor,
                         const TensorByName& momentum) const {
  conv.layout = tap_layout(node, conv.inputs() * node.groups);
  const bool fast = has_kernels(node, conv.layout);
  conv.rule = fast ? kernels_.get() : autograd_.get();
  if (conv.layer == nullptr) return;
  if (fast) {
    conv.attention = tensor(node.name + ".attention");
    conv.attention_momentum = momentum(node.name + ".attention");
    conv.relax = tap_relax(node.method);
  } else {
    for (const auto& parameter : conv.layer->named_parameters()) {
      conv.momenta.push_back(momentum(node.name + "." + parameter.key()));
    }
  }
}

void WeightRules::pack(at::ArrayRef<ConvState> convs, const StepValues& values) const {
  by_rule(convs, [&](WeightRule& rule, at::ArrayRef<ConvState> some) { rule.pack(some, values); });
}

void WeightRules::update(at::ArrayRef<ConvState> convs, const StepValues& values, const UpdateOptions& options) const {
  by_rule(convs, [&](WeightRule& rule, at::ArrayRef<ConvState> some) { rule.update(some, values, options); });
}

}  // namespace onetap::fused
