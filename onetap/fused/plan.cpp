#include "onetap/fused/plan.h"

#include "onetap/fused/weight_rule.h"
#include "onetap/graph/op.h"
#include "onetap/graph/uses.h"

#include <fmt/format.h>

#include <unordered_map>

namespace onetap::fused {
namespace {

// A row of 32-bit values, one thread for four of them, must fit a block.
constexpr int64_t kMostChannels = 2048;

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph), uses_(graph) {}

  Plan plan() {
    for (const Node& node : graph_.nodes()) {
      place(node);
      if (!plan_.obstacle.empty()) return std::move(plan_);
    }
    const auto result = value_.find(graph_.output());
    if (result == value_.end() || plan_.steps.empty() || plan_.steps.back().kind != Step::Kind::kLinear ||
        plan_.steps.back().output != result->second) {
      plan_.obstacle = "it does not end with a linear layer";
    } else {
      plan_.result = result->second;
      find_last_uses();
    }
    return std::move(plan_);
  }

 private:
  void find_last_uses() {
    std::vector<bool> is_read(static_cast<size_t>(plan_.values));
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      for (const int value : {step->input, step->residual}) {
        if (value < 0 || is_read[static_cast<size_t>(value)]) continue;
        is_read[static_cast<size_t>(value)] = true;
        step->last_uses.push_back(value);
      }
    }
  }

  void obstacle(const Node& node, const std::string& what) {
    plan_.obstacle = fmt::format("{} ({}): {}", node.name, op_info(node.op).name, what);
  }

  Step& add(Step::Kind kind, const Node& node) {
    Step step;
    step.kind = kind;
    step.node = &node;
    step.input = value_.at(node.inputs[0]);
    step.output = plan_.values++;
    value_[node.name] = step.output;
    plan_.steps.push_back(step);
    return plan_.steps.back();
  }

  // The norm that made this value, if nobody else uses it and nothing but its own ReLU would come between.
  Step* open_norm(const std::string& name) {
    if (uses_.count(graph_.node(name)) != 1) return nullptr;
    for (Step& step : plan_.steps) {
      if (step.output == value_.at(name) && step.kind == Step::Kind::kNorm && !step.relu) return &step;
    }
    return nullptr;
  }

  void place(const Node& node) {
    if (uses_.count(node) == 0) return obstacle(node, "has no reader");
    switch (node.op) {
      case Op::kInput:
        value_[node.name] = 0;
        break;
      case Op::kConv:
        if (node.bias) return obstacle(node, "has a bias");
        place_conv(node);
        break;
      case Op::kBatchNorm:
        if (node.shape[0] > kMostChannels) return obstacle(node, "has more than 2,048 channels");
        if (node.epsilon != kBatchNormEpsilon) return obstacle(node, "has an eps of its own");
        add(Step::Kind::kNorm, node);
        break;
      case Op::kAdd:
        place_add(node);
        break;
      case Op::kRelu:
        if (Step* norm = open_norm(node.inputs[0])) {
          norm->relu = true;
          value_[node.name] = norm->output;
        } else {
          add(Step::Kind::kRelu, node);
        }
        break;
      case Op::kShift:
        add(Step::Kind::kShift, node);
        break;
      case Op::kActiveShift:
        add(Step::Kind::kActiveShift, node);
        break;
      case Op::kSubsample:
        add(Step::Kind::kSubsample, node);
        break;
      case Op::kMaxPool:
        add(Step::Kind::kMaxPool, node);
        break;
      case Op::kGlobalAvgPool:
        add(Step::Kind::kGlobalPool, node);
        break;
      case Op::kFlatten:
        if (graph_.source(node).shape.size() != 1) return obstacle(node, "does not follow a global pool");
        value_[node.name] = value_.at(node.inputs[0]);
        break;
      case Op::kLinear:
        if (graph_.source(node).shape.size() != 1) return obstacle(node, "does not follow a global pool");
        add(Step::Kind::kLinear, node);
        break;
      default:
        obstacle(node, "has no fused form");
    }
  }

  void place_conv(const Node& node) {
    if (node.out > kMostChannels) return obstacle(node, "has more than 2,048 outputs");
    if (node.groups != 1) {
      const bool depthwise = node.groups == node.out && node.groups == in_channels(graph_, node);
      if (!depthwise || !node.method.is_dense()) return obstacle(node, "has groups");
      if (!has_depthwise_kernel(node.kernel)) return obstacle(node, "has an unusual kernel");
      add(Step::Kind::kDepthwise, node);
      return;
    }
    if (!has_kernel_area(node.kernel.area())) return obstacle(node, "has an unusual kernel");
    add(Step::Kind::kConv, node);
  }

  void place_add(const Node& node) {
    if (node.inputs.size() != 2) return obstacle(node, "sums more than two");
    // The later norm takes the other value in.
    Step* norms[2] = {open_norm(node.inputs[0]), open_norm(node.inputs[1])};
    for (Step*& norm : norms) {
      if (norm != nullptr && norm->residual >= 0) norm = nullptr;
    }
    const int taker = norms[0] != nullptr && (norms[1] == nullptr || norms[0] > norms[1]) ? 0 : 1;
    const int other = value_.at(node.inputs[static_cast<size_t>(1 - taker)]);
    if (norms[taker] == nullptr || other > norms[taker]->output) {
      add(Step::Kind::kAdd, node).residual = value_.at(node.inputs[1]);
      return;
    }
    norms[taker]->residual = other;
    value_[node.name] = norms[taker]->output;
  }

  const Graph& graph_;
  const Uses uses_;
  Plan plan_;
  std::unordered_map<std::string, int> value_;
};

}  // namespace

Plan make_plan(const Graph& graph) {
  return Planner(graph).plan();
}

}  // namespace onetap::fused
