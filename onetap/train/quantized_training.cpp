#include "onetap/train/quantized_training.h"

#include "onetap/base/fail.h"

#include <set>
#include <unordered_map>

namespace onetap {
namespace {

constexpr double kShareOfNewest = 0.01;  // of a batch in the ranges
constexpr double kLeastRange = 1e-20;    // of a value that is always 0

}  // namespace

struct QuantizedTraining::Core {
  enum class Work { kQuantize, kCalibrate };

  // What a batch norm by running statistics multiplies by, and what it adds.
  struct Norm {
    torch::Tensor weight, bias, mean, variance;
    double epsilon = 0;

    torch::Tensor scale() const { return weight * (variance + epsilon).rsqrt(); }
    torch::Tensor shift() const { return bias - mean * scale(); }
  };

  Int8Places places;
  std::unordered_map<std::string, size_t> place_of;  // by node
  std::unordered_map<std::string, Norm> norms;       // by node
  std::set<std::string> affine;
  torch::Tensor ranges;
  Work work = Work::kQuantize;
  int64_t batches = 0;  // that were calibrated by

  torch::Tensor edited(const Node& node, const torch::Tensor& weight) const {
    const auto layer = places.layers.find(node.name);
    if (work == Work::kCalibrate || layer == places.layers.end()) return weight;
    return layer->second.empty() ? fake_quantize_weight(weight) : rounded_behind(weight, norms.at(layer->second));
  }

  // The weight whose product with the norm's scale is the rounded one of both.
  static torch::Tensor rounded_behind(const torch::Tensor& weight, const Norm& norm) {
    std::vector<int64_t> per_output(static_cast<size_t>(weight.dim()), 1);
    per_output[0] = -1;
    const auto scale = norm.scale().view(per_output);
    return fake_quantize_weight(weight * scale) / scale.masked_fill(scale == 0, 1.0);
  }

  // As a layer with one weight per channel.
  torch::Tensor rounded_affine(const Node& node, const torch::Tensor& value) const {
    const Norm& norm = norms.at(node.name);
    const auto scale = norm.scale().detach(), shift = per_channel(norm.shift().detach());
    const auto by = fake_quantize_weight(scale.unsqueeze(1)).squeeze(1) / scale.masked_fill(scale == 0, 1.0);
    return (value - shift) * per_channel(by) + shift;
  }

  torch::Tensor rounded(const Node& node, torch::Tensor value, bool training) {
    if (work == Work::kQuantize && affine.count(node.name) > 0) value = rounded_affine(node, value);
    const auto found = place_of.find(node.name);
    if (found == place_of.end()) return value;
    const Int8Place& place = places.values[found->second];
    if (work == Work::kCalibrate || training) follow(found->second, value);
    if (work == Work::kCalibrate) return value;
    torch::Tensor range = ranges[static_cast<int64_t>(place.group[0])];
    for (size_t i = 1; i < place.group.size(); ++i) {
      range = torch::maximum(range, ranges[static_cast<int64_t>(place.group[i])]);
    }
    return fake_quantize(value, range.clamp_min(kLeastRange) / place.steps, place.range);
  }

  void follow(size_t place, const torch::Tensor& value) const {
    const torch::NoGradGuard no_grad;
    const double share = work == Work::kCalibrate ? 1.0 / static_cast<double>(batches + 1) : kShareOfNewest;
    ranges[static_cast<int64_t>(place)].lerp_(value.detach().abs().amax().to(ranges.scalar_type()), share);
  }
};

QuantizedTraining::QuantizedTraining(const nn::GraphModule& given) : core_(std::make_shared<Core>()) {
  nn::GraphModule module = given;
  core_->places = int8_places(module->graph());
  for (size_t i = 0; i < core_->places.values.size(); ++i) core_->place_of[core_->places.values[i].node] = i;
  core_->affine.insert(core_->places.affine.begin(), core_->places.affine.end());
  const auto parameters = module->named_parameters();
  const auto buffers = module->named_buffers();
  std::set<std::string> norms;
  for (const Node& node : module->graph().nodes()) {
    if (node.op != Op::kBatchNorm) continue;
    norms.insert(node.name);
    core_->norms[node.name] = {parameters[node.name + ".weight"], parameters[node.name + ".bias"],
                               buffers[node.name + ".running_mean"], buffers[node.name + ".running_var"], node.epsilon};
  }
  const auto device = parameters.is_empty() ? torch::Device(torch::kCPU) : parameters[0].value().device();
  const auto count = static_cast<int64_t>(core_->places.values.size());
  core_->ranges = module->register_buffer(kRanges, torch::zeros({count}, torch::TensorOptions().device(device)));
  module->fix_norms(norms);
  module->train_hard();
  module->set_weight_editor(
      [core = core_](const Node& node, const torch::Tensor& weight) { return core->edited(node, weight); });
  // Not by a handle of the module, which would hold itself.
  module->set_editor([core = core_, raw = module.get()](const Node& node, const torch::Tensor& value) {
    return core->rounded(node, value, raw->is_training());
  });
}

void QuantizedTraining::calibrate(const std::function<bool()>& forward) {
  struct InFloats {
    explicit InFloats(Core& given) : core(given) { core.work = Core::Work::kCalibrate; }
    ~InFloats() { core.work = Core::Work::kQuantize; }
    Core& core;
  };
  const InFloats in_floats(*core_);
  core_->batches = 0;
  while (forward()) ++core_->batches;
}

std::map<std::string, float> named_ranges(const Graph& trained, const torch::Tensor& ranges) {
  const Int8Places places = int8_places(trained);
  if (ranges.dim() != 1 || ranges.size(0) != static_cast<int64_t>(places.values.size())) {
    fail_data("[checkpoint] expected ranges of {} values, got {}", places.values.size(), ranges.numel());
  }
  std::map<std::string, float> named;
  const auto on_cpu = ranges.to(torch::kCPU, torch::kFloat32).contiguous();
  for (size_t i = 0; i < places.values.size(); ++i) named[places.values[i].value] = on_cpu.data_ptr<float>()[i];
  return named;
}

}  // namespace onetap
