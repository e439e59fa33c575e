#include "onetap/runtime/plan.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/aligned.h"
#include "onetap/runtime/arena.h"

#include <algorithm>
#include <unordered_map>

namespace onetap {
namespace {

constexpr int64_t kMaxArena = int64_t{1} << 32;

bool is_conv(const Node& node) {
  return node.op == Op::kConv || node.op == Op::kTapConv;
}

bool takes_relu(const Node& node) {
  return is_conv(node) || node.op == Op::kLinear || node.op == Op::kAffine || node.op == Op::kAdd;
}

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      for (const std::string& input : node.inputs) readers_[input].push_back(&node);
    }
  }

  ExecutionPlan plan() {
    for (const Node& node : graph_.nodes()) {
      if (fused_.count(node.name) > 0) continue;
      if (node.op == Op::kInput) {
        plan_.input = add_value(node, node.name, /*aligned=*/false);
      } else if (!waits_for_sum(node)) {
        add_step(node);
      }
    }
    plan_.output = value_of_.at(graph_.output());
    place();
    return std::move(plan_);
  }

 private:
  // The one node that reads this one's value, if there is just one and nobody else needs it.
  const Node* only_reader(const Node& node) const {
    const auto found = readers_.find(node.name);
    if (found == readers_.end() || found->second.size() != 1 || graph_.output() == node.name) return nullptr;
    return found->second.front();
  }

  // A convolution whose value only goes into a sum of two is run by the sum, once the other addend is there: of two
  // such convolutions the later one. The sum then becomes the convolution's step. The network's input is no such
  // addend: kernels read addends by the vector, and the caller's planes end where they end.
  const Node* conv_of_sum(const Node& sum) const {
    if (sum.op != Op::kAdd || sum.inputs.size() != 2 || sum.inputs[0] == sum.inputs[1]) return nullptr;
    for (const std::string& input : sum.inputs) {
      if (graph_.node(input).op == Op::kInput) return nullptr;
    }
    const Node* last = nullptr;
    for (const Node& node : graph_.nodes()) {
      const bool is_input = node.name == sum.inputs[0] || node.name == sum.inputs[1];
      if (is_input && is_conv(node) && only_reader(node) == &sum) last = &node;
    }
    return last;
  }

  bool waits_for_sum(const Node& node) const {
    const Node* reader = is_conv(node) ? only_reader(node) : nullptr;
    return reader != nullptr && conv_of_sum(*reader) == &node;
  }

  void add_step(const Node& node) {
    PlannedStep step;
    step.node = &node;
    const Node* last = &node;
    if (const Node* conv = conv_of_sum(node)) {
      step.node = conv;
      step.residual = value_of_.at(node.inputs[0] == conv->name ? node.inputs[1] : node.inputs[0]);
    }
    step.source = &graph_.source(*step.node);
    for (const std::string& input : step.node->inputs) step.inputs.push_back(value_of_.at(input));
    if (const Node* reader = takes_relu(node) ? only_reader(node) : nullptr; reader && reader->op == Op::kRelu) {
      step.relu = true;
      last = reader;
      fused_[reader->name] = true;
    }
    step.output = add_value(*last, last->name, /*aligned=*/true);
    plan_.steps.push_back(std::move(step));
  }

  int add_value(const Node& node, const std::string& name, bool aligned) {
    PlannedValue value;
    value.channels = node.shape[0];
    if (node.shape.size() == 3) {
      value.pixels = node.shape[1] * node.shape[2];
      value.plane = aligned ? plane_floats(value.pixels) : value.pixels;
    }
    plan_.values.push_back(value);
    const auto index = static_cast<int>(plan_.values.size()) - 1;
    value_of_[name] = index;
    return index;
  }

  void place() {
    std::vector<Lifetime> lifetimes(plan_.values.size());
    for (size_t i = 0; i < lifetimes.size(); ++i) lifetimes[i].floats = plan_.values[i].floats();
    lifetimes[static_cast<size_t>(plan_.input)].floats = 0;
    const auto steps = static_cast<int>(plan_.steps.size());
    for (int s = 0; s < steps; ++s) {
      const PlannedStep& step = plan_.steps[static_cast<size_t>(s)];
      Lifetime& output = lifetimes[static_cast<size_t>(step.output)];
      output.first = output.last = s;
      for (const int input : step.inputs) lifetimes[static_cast<size_t>(input)].last = s;
      if (step.residual >= 0) lifetimes[static_cast<size_t>(step.residual)].last = s;
    }
    lifetimes[static_cast<size_t>(plan_.output)].last = steps;
    plan_.arena_floats = place_values(lifetimes);
    if (plan_.arena_floats > kMaxArena) {
      fail_usage("[runtime] {} needs more than 2^32 values at once", graph_.name());
    }
    for (size_t i = 0; i < lifetimes.size(); ++i) plan_.values[i].offset = lifetimes[i].offset;
  }

  const Graph& graph_;
  ExecutionPlan plan_;
  std::unordered_map<std::string, std::vector<const Node*>> readers_;
  std::unordered_map<std::string, int> value_of_;
  std::unordered_map<std::string, bool> fused_;
};

}  // namespace

ExecutionPlan plan_execution(const Graph& graph) {
  return Planner(graph).plan();
}

}  // namespace onetap
