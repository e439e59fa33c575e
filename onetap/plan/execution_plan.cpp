#include "onetap/plan/execution_plan.h"

#include "onetap/base/align.h"
#include "onetap/base/fail.h"
#include "onetap/graph/uses.h"
#include "onetap/plan/arena.h"

#include <unordered_map>
#include <unordered_set>

namespace onetap {
namespace {

bool is_conv(const Node& node) {
  return node.op == Op::kConv || node.op == Op::kTapConv;
}

bool takes_relu(const Node& node) {
  return is_conv(node) || node.op == Op::kLinear || node.op == Op::kAffine || node.op == Op::kAdd;
}

void find_peak(const std::vector<Lifetime>& lifetimes, ExecutionPlan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 2, 0);  // of the bytes in use, at every step
  for (const Lifetime& value : lifetimes) {
    change[static_cast<size_t>(value.first)] += value.bytes;
    change[static_cast<size_t>(value.last) + 1] -= value.bytes;
  }
  int64_t in_use = 0, most = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    in_use += change[s];
    if (in_use <= most) continue;
    most = in_use;
    plan.peak = plan.steps[s].node;
  }
}

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options) : graph_(graph), options_(options), uses_(graph) {}

  ExecutionPlan plan() {
    for (const Node& node : graph_.nodes()) {
      if (fused_.count(&node) > 0) continue;
      if (node.op == Op::kInput) {
        plan_.input = add_value(node);
      } else if (!waits_for_sum(node)) {
        add_step(node);
      }
    }
    plan_.output = value_of_.at(graph_.output());
    place();
    return std::move(plan_);
  }

 private:
  // A convolution whose value only goes into a sum of two is run by the sum, once the other addend is there: of two
  // such convolutions the later one. The sum then becomes the convolution's step. The network's input is no such
  // addend: kernels read addends by the vector, and the caller's planes end where they end.
  const Node* conv_of_sum(const Node& sum) const {
    if (sum.op != Op::kAdd || sum.inputs.size() != 2) return nullptr;
    const Node* later = &graph_.node(sum.inputs[0]);
    const Node* earlier = &graph_.node(sum.inputs[1]);
    if (later->op == Op::kInput || earlier->op == Op::kInput) return nullptr;
    if (uses_.index_of(later->name) < uses_.index_of(earlier->name)) std::swap(later, earlier);
    for (const Node* node : {later, earlier}) {
      if (is_conv(*node) && uses_.only_reader(*node) == &sum) return node;
    }
    return nullptr;
  }

  bool waits_for_sum(const Node& node) const {
    const Node* reader = is_conv(node) ? uses_.only_reader(node) : nullptr;
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
    const Node* reader = takes_relu(node) ? uses_.only_reader(node) : nullptr;
    if (reader != nullptr && reader->op == Op::kRelu) {
      step.relu = true;
      last = reader;
      fused_.insert(reader);
    }
    step.output = add_value(*last);
    plan_.steps.push_back(std::move(step));
  }

  // The value of a node; the input's is the caller's and has no gaps.
  int add_value(const Node& node) {
    PlannedValue value;
    value.node = &node;
    value.dtype = options_.dtype;
    value.channels = node.shape[0];
    if (node.shape.size() == 3) {
      value.pixels = node.shape[1] * node.shape[2];
      value.plane_stride = node.op == Op::kInput ? value.pixels : plane_stride(value.pixels, options_);
    }
    plan_.values.push_back(value);
    const auto index = static_cast<int>(plan_.values.size()) - 1;
    value_of_[node.name] = index;
    return index;
  }

  void place() {
    std::vector<int64_t> bytes;
    for (const PlannedValue& value : plan_.values) bytes.push_back(value.bytes());
    bytes[static_cast<size_t>(plan_.input)] = 0;
    plan_.peak = &graph_.input();
    place_in_arena(plan_, bytes, options_.alignment);
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const Uses uses_;
  ExecutionPlan plan_;
  std::unordered_map<std::string, int> value_of_;
  std::unordered_set<const Node*> fused_;
};

}  // namespace

int64_t plane_stride(int64_t pixels, const PlanOptions& options) {
  const auto element = static_cast<int64_t>(dtype_bytes(options.dtype));
  int64_t units = round_up(pixels * element, options.alignment) / options.alignment;
  if (options.odd_plane_stride) units |= 1;
  return units * options.alignment / element;
}

void place_in_arena(ExecutionPlan& plan, const std::vector<int64_t>& bytes, int64_t alignment) {
  std::vector<Lifetime> lifetimes(plan.values.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) lifetimes[i].bytes = bytes[i];
  const auto steps = static_cast<int>(plan.steps.size());
  for (int s = 0; s < steps; ++s) {
    const PlannedStep& step = plan.steps[static_cast<size_t>(s)];
    Lifetime& output = lifetimes[static_cast<size_t>(step.output)];
    output.first = output.last = s;
    for (const int input : step.inputs) lifetimes[static_cast<size_t>(input)].last = s;
    if (step.residual >= 0) lifetimes[static_cast<size_t>(step.residual)].last = s;
  }
  lifetimes[static_cast<size_t>(plan.output)].last = steps;
  plan.arena_bytes = place_values(lifetimes, alignment);
  for (size_t i = 0; i < lifetimes.size(); ++i) plan.values[i].offset = lifetimes[i].offset;
  find_peak(lifetimes, plan);
}

ExecutionPlan plan_execution(const Graph& graph, const PlanOptions& options) {
  const auto element = static_cast<int64_t>(dtype_bytes(options.dtype));
  if (options.alignment < 1 || options.alignment % element != 0) {
    fail_usage("[plan] expected an alignment that is a multiple of {} bytes ({}), got {}", element,
               dtype_name(options.dtype), options.alignment);
  }
  return Planner(graph, options).plan();
}

}  // namespace onetap
